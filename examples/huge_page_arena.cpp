// huge_page_arena.cpp - stacks from a source of one's own: one arena of huge pages.
//
// A stack_source is two functions. This one cuts stacks out of a single aligned reservation that
// the kernel is asked to back with huge pages (MADV_HUGEPAGE): thousands of stacks then share a few
// TLB entries. There are no guards inside it; whoever trades them for speed should know how deep
// his stacks get, and stack_high_water() tells.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdio>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

class huge_page_arena final : public stack_source {
public:
    // A page more than is needed, so that one begins within the first.
    explicit huge_page_arena(std::size_t size) : mapped_size_(size + huge_page) {
        mapped_ = ::mmap(nullptr, mapped_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                         -1, 0);
        if (mapped_ == MAP_FAILED) throw std::bad_alloc();
        void* begin = mapped_;
        std::size_t room = mapped_size_;
        next_ = static_cast<std::byte*>(std::align(huge_page, size, begin, room));
        end_ = next_ + size;
        ::madvise(next_, size, MADV_HUGEPAGE);  // a wish; ordinary pages serve as well
    }
    huge_page_arena(const huge_page_arena&) = delete;
    huge_page_arena& operator=(const huge_page_arena&) = delete;
    ~huge_page_arena() override { ::munmap(mapped_, mapped_size_); }

    stack take(std::size_t size) override {
        if (!idle_.empty() && idle_.back().size >= size) {
            const stack last = idle_.back();
            idle_.pop_back();
            return last;
        }
        const std::size_t rounded = (size + 63) / 64 * 64;
        if (rounded > static_cast<std::size_t>(end_ - next_)) throw std::bad_alloc();
        idle_.reserve(++cut_);  // so that give_back() never allocates
        next_ += rounded;
        return {next_ - rounded, rounded};
    }

    void give_back(stack taken) noexcept override { idle_.push_back(taken); }

    [[nodiscard]] std::size_t cut() const noexcept { return cut_; }

private:
    static constexpr std::size_t huge_page = std::size_t{2} << 20;

    void* mapped_;
    std::size_t mapped_size_;
    std::byte* next_;
    std::byte* end_;
    std::size_t cut_ = 0;
    std::vector<stack> idle_;
};

int main() {
    constexpr std::size_t stack_size = 64 * 1024;
    constexpr int count = 100;
    huge_page_arena arena(256 * stack_size);

    std::vector<int> results;
    std::size_t deepest = 0;
    for (int round = 0; round < 2; ++round) {
        std::vector<coroutine> all;
        for (int i = 0; i < count; ++i) {
            const coroutine_options options{
                .stack_size = stack_size, .stacks = &arena, .measure_stack = true};
            all.emplace_back(options, [&results, i] {
                results.push_back(i);
                this_coroutine::yield();
                results.push_back(-i);
            });
        }
        for (int pass = 0; pass < 2; ++pass)
            for (coroutine& c : all) c.resume();
        for (coroutine& c : all) deepest = std::max(deepest, c.stack_high_water());
    }

    const int sum = std::accumulate(results.begin(), results.end(), 0);
    std::printf("%d coroutines twice, %zu stacks cut from one arena, deepest %zu bytes\n", count,
                arena.cut(), deepest);
    return sum == 0 && arena.cut() == count && deepest > 0 ? 0 : 1;
}
