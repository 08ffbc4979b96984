// temporary_folder.hpp - a folder of a test's own, gone with all that is in it at the end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace weft_test {

class temporary_folder {
public:
    temporary_folder() : path_(std::filesystem::temp_directory_path() / "weft-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr)
            throw std::system_error(errno, std::system_category(), path_);
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    /// The path of a file in it.
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }

private:
    std::string path_;
};

}  // namespace weft_test
