// fiber_context.cpp - the program of docs/fiber_context.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include <weft/coroutine/fiber_context.hpp>

int main() {
    int a = 0;
    weft::fiber_context fibonacci([&a](weft::fiber_context&& main) {
        for (int b = 1; a < 100;) {
            main = std::move(main).resume();  // there is a number in a
            a = std::exchange(b, a + b);
        }
        return std::move(main);  // the fiber ends; main goes on
    });
    while ((fibonacci = std::move(fibonacci).resume())) std::printf("%d ", a);
    std::puts("");  // 0 1 1 2 3 5 8 13 21 34 55 89
}
