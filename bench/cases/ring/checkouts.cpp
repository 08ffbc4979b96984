// checkouts.cpp - the rings of peers that no package has, by their own programs from a checkout:
// usched, if USCHED_DIR named one when the build was configured.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;

constexpr row rows[] = {
    {.key = "usched",
     .title = "usched, its own program",
     .bytes = 512,
     .sparse = true,
     .exact = false,
     .counts = false,
     .program = "usched"},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
