// others.cpp - the rings in other languages: starts go (go.go) and rust (rust.rs), if they were
// built, for each size of the tables, and checks what they say.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;

constexpr row rows[] = {
    {.key = "go",
     .title = "Go, unbuffered channels",
     .messages = 1'600'000,
     .bytes = 2'800,
     .sparse = true,
     .exact = false,
     .counts = false,
     .program = "go",
     .argument = "0"},
    {.key = "go16",
     .title = "Go, channels of 16",
     .messages = 1'600'000,
     .bytes = 2'800,
     .sparse = true,
     .exact = false,
     .counts = false,
     .program = "go",
     .argument = "16"},
    {.key = "rust",
     .title = "Rust async, own executor",
     .bytes = 300,
     .sparse = true,
     .exact = false,
     .counts = false,
     .program = "rust"},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
