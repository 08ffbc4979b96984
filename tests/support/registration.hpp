// registration.hpp - what main() asks of weft_test.cpp: to make GoogleTest know the tests.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace weft_test {

/// Tells GoogleTest of the test of this name ("suite.name") alone and returns true; if there is
/// none, tells it of all tests.
bool register_only(const std::string& name);

}  // namespace weft_test
