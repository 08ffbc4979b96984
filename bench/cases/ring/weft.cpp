// weft.cpp - the ring on fibers of weft: every kind of fiber, both orders, one thread and two.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/ring/weft_ring.hpp"

namespace {

using namespace bench::ring;
using enum weft::stack_kind;

constexpr std::string_view large = "not tried: 16 GiB and more";
constexpr std::string_view slow = "not tried: takes minutes, and Linux ends it at 32,000 threads";
constexpr std::uint64_t page = 4'700;  // a fiber with one page of stack in use

constexpr row rows[] = {
    {.key = "slot",
     .title = "weft, wake slot",
     .make = make<true, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page},
    {.key = "fifo",
     .title = "weft, strictly FIFO",
     .make = make<false, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page},
    {.key = "swapped",
     .title = "weft, swapped",
     .make = make<true, swapped>,
     .messages = 4'000'000,
     .bytes = 1'400,
     .sparse = true},
    {.key = "ucontext",
     .title = "weft, ucontext",
     .make = make<true, ucontext>,
     .messages = 4'000'000,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page + 1'000,
     .sparse = true},
    {.key = "thread",
     .title = "weft, thread",
     .make = make<true, thread>,
     .messages = 200'000,
     .most_fibers = 8'000,
     .why = slow,
     .bytes = 20'000,
     .sparse = true},
    {.key = "slot1000",
     .title = "weft, wake slot, D = 1000",
     .make = make<true, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page,
     .frame = 1'000,
     .sparse = true},
    {.key = "slot10000",
     .title = "weft, wake slot, D = 10000",
     .make = make<true, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page + 12'000,
     .frame = 10'000,
     .sparse = true},
    {.key = "swapped1000",
     .title = "weft, swapped, D = 1000",
     .make = make<true, swapped>,
     .messages = 4'000'000,
     .most_fibers = 4'000'000,
     .why = large,
     .bytes = 2'400,
     .frame = 1'000,
     .sparse = true},
    {.key = "swapped10000",
     .title = "weft, swapped, D = 10000",
     .make = make<true, swapped>,
     .messages = 2'000'000,
     .bytes = 11'400,
     .frame = 10'000,
     .sparse = true},
    {.key = "threads1",
     .title = "weft, one loop a thread, P = 1",
     .make = make<true, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page,
     .sparse = true,
     .asked = true},
    {.key = "threads2",
     .title = "weft, one loop a thread, P = 2",
     .make = make<true, own>,
     .most_fibers = 2'000'000,
     .why = large,
     .bytes = page,
     .threads = 2,
     .sparse = true,
     .asked = true},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
