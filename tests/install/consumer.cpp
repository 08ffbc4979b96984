// consumer.cpp - a user's program: it sees weft only as installed or as a subdirectory.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string_view>

#include <weft/weft.hpp>

#if WEFT_VERSION < 100
#error "older than the first version"
#endif

int main() {
    if (weft::version() != std::string_view(EXPECTED_VERSION)) {
        std::puts("the library's version is not the package's");
        return 1;
    }
    weft::generator<int> numbers([](auto& yield) {
        for (int i = 0; i < 3; ++i) yield(i);
    });
    int sum = 0;
    for (int value : numbers) sum += value;
    return sum == 3 ? 0 : 1;
}
