// errc.cpp - what the errors of weft say.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/base/errc.hpp>

#include <string>

namespace weft::inline v0 {

namespace {

class weft_category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "weft"; }
    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::closed:
                return "it is closed";
            case errc::shutdown:
                return "the executor takes no new work";
            case errc::end_of_stream:
                return "the stream ended too early";
        }
        return "unknown error";
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const weft_category category;
    return category;
}

}  // namespace weft::inline v0
