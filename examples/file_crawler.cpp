// file_crawler.cpp - counts the words of all files below a folder, many files at once.
//
//     file_crawler src
//
// Folders are listed on the side pool, files are read through io::read_file. A group that is
// bounded keeps the number of open files small however large the tree is.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;
namespace fs = std::filesystem;

namespace {

struct totals {
    std::atomic<long> files = 0;
    std::atomic<long> words = 0;
    std::atomic<long> unreadable = 0;
};

struct listing {
    std::vector<fs::path> files;
    std::vector<fs::path> folders;
    bool readable = true;
};

listing list(const fs::path& folder) {
    return io::blocking([folder] {
        listing found;
        std::error_code error;
        for (const auto& one : fs::directory_iterator(folder, error)) {
            if (one.is_symlink()) continue;
            if (one.is_directory()) found.folders.push_back(one.path());
            if (one.is_regular_file()) found.files.push_back(one.path());
        }
        found.readable = !error;
        return found;
    });
}

void count(const fs::path& file, totals& sums) {
    const auto text = io::read_file(file.string(), 1 << 24);
    if (!text) {
        ++sums.unreadable;
        return;
    }
    std::istringstream words(*text);
    for (std::string word; words >> word;) ++sums.words;
    ++sums.files;
}

void crawl(const fs::path& root, totals& sums) {
    with_task_group<void>({.limit = 32, .discard = true}, [&](task_group<void>& g) {
        std::vector<fs::path> folders{root};
        while (!folders.empty()) {
            const listing found = list(folders.back());
            folders.pop_back();
            if (!found.readable) ++sums.unreadable;
            folders.insert(folders.end(), found.folders.begin(), found.folders.end());
            for (const fs::path& file : found.files) g.add([&sums, file] { count(file, sums); });
        }
        g.wait();
    });
}

// A little tree for the program without arguments.
fs::path make_tree() {
    const fs::path root = fs::temp_directory_path() / "weft-crawl";
    for (int i = 0; i < 20; ++i) {
        const fs::path folder = root / std::to_string(i);
        fs::create_directories(folder);
        for (int j = 0; j < 10; ++j)
            std::ofstream(folder / std::to_string(j)) << "the warp and the weft\n";
    }
    return root;
}

}  // namespace

int main(int argc, char** argv) {
    const fs::path root = argc > 1 ? fs::path(argv[1]) : make_tree();
    totals sums;
    run([&] { crawl(root, sums); });
    std::printf("%ld files, %ld words, %ld not readable\n", sums.files.load(), sums.words.load(),
                sums.unreadable.load());
    if (argc > 1) return sums.files == 0 && sums.unreadable != 0 ? 1 : 0;
    fs::remove_all(root);
    return sums.files == 200 && sums.words == 1000 ? 0 : 1;
}
