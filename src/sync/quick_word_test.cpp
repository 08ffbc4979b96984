// quick_word_test.cpp - when the word of a mutex is quick, and how it stops to be. The protocol has
// a model: tests/model/quick_word_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/detail/quick_word.hpp>

#include <thread>

#include "weft_test.hpp"

using namespace weft::detail;

namespace {

void make_quick(quick_word& word) {
    for (int i = 0; i < 1000; ++i) {
        ASSERT_TRUE(word.take());
        ASSERT_TRUE(word.leave());
    }
}

}  // namespace

WEFT_TEST("quick_word: is careful at first, and quick after some unlocks if the system helps") {
    quick_word word;
    CHECK(!word.is_quick());
    make_quick(word);
    CHECK(word.is_quick() == process_barrier::available());
}

WEFT_TEST("quick_word: is careful after the barrier, held or free") {
    quick_word word;
    make_quick(word);
    std::thread([&] { word.make_careful(0); }).join();
    CHECK(!word.is_quick());
    CHECK(word.load() == quick_word::careful);
    make_quick(word);
    CHECK(word.take());
    std::thread([&] { word.make_careful(0); }).join();
    CHECK(word.load() == (quick_word::careful | quick_word::locked));
    CHECK(word.leave());
    CHECK(word.load() == quick_word::careful);
}

WEFT_TEST("quick_word: its holder answers to one that asks, and gives it up") {
    if (!process_barrier::available())
        GTEST_SKIP() << "without membarrier(2) no lock is ever quick";
    quick_word word;
    make_quick(word);
    CHECK(word.take());
    std::thread asks([&] { word.make_careful(~0U); });
    while (word.is_quick()) std::this_thread::yield();
    CHECK(!word.leave());
    CHECK(word.answer());
    asks.join();
    CHECK(word.load() == quick_word::careful);
    CHECK(word.take());
    CHECK(word.leave());
}

WEFT_TEST("quick_word: its holder stops all changes without a barrier, and goes on or is careful") {
    if (!process_barrier::available())
        GTEST_SKIP() << "without membarrier(2) no lock is ever quick";
    quick_word word;
    make_quick(word);
    CHECK(word.take());
    CHECK(word.stop());
    CHECK(!word.stop());
    word.go_on();
    CHECK(word.is_quick());
    CHECK(word.stop());
    word.be_careful(4);
    CHECK(word.load() == (quick_word::careful | quick_word::locked | 4));
    CHECK(!word.leave());
    CHECK(!word.answer());
}
