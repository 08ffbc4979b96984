// version.cpp - the library's own version and build symbol.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/version.hpp>

#define WEFT_TEXT(x) #x
#define WEFT_TEXT_OF(x) WEFT_TEXT(x)

extern "C" const char WEFT_BUILD_SYMBOL = 0;

namespace weft::inline v0 {

std::string_view version() noexcept {
    return WEFT_TEXT_OF(WEFT_VERSION_MAJOR) "." WEFT_TEXT_OF(WEFT_VERSION_MINOR) "." WEFT_TEXT_OF(
        WEFT_VERSION_PATCH);
}

}  // namespace weft::inline v0
