// main.cpp - the main function of every test program.
//
// GoogleTest's filter gives ':' and '-' a meaning, so a test whose name is a sentence could not be
// run by its name. Here a filter that is exactly the name of a test means that test. And a filter
// that matches nothing is an error: a test that did not run has not passed.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "registration.hpp"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::string filter = GTEST_FLAG_GET(filter);
    if (weft_test::register_only(filter)) {
        std::ranges::replace_if(
            filter, [](char c) { return c == ':' || c == '-'; }, '?');
        GTEST_FLAG_SET(filter, filter);
    }
    const int status = RUN_ALL_TESTS();
    if (testing::UnitTest::GetInstance()->test_to_run_count() == 0 && !GTEST_FLAG_GET(list_tests)) {
        std::fprintf(stderr, "no test matches %s\n", filter.c_str());
        return 1;
    }
    return status;
}
