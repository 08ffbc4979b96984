// hello.cpp - the program of the README: two fibers, of which one waits for the other.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

int main() {
    return run([] {                                     // the whole program on fibers
        fiber ticker([] {                               // a handle, as std::jthread's
            while (sleep_for(10ms)) std::puts("tick");  // looks blocking, and is not
        });
        fiber worker([] {
            for (int i = 1; i <= 3; ++i) {
                sleep_for(25ms);
                std::printf("step %d\n", i);
            }
        });
        worker.join();
        return 0;  // ~fiber asks the ticker to stop, and waits
    });
}
