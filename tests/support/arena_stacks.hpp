// arena_stacks.hpp - a source as a user writes one: stacks side by side in memory of its own.
//
// It tells no tool of them. The last one given back is the first one taken, and what was given back
// is written over.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <vector>

#include <weft/stack/stack.hpp>

namespace weft_test {

class arena_stacks final : public weft::stack_source {
public:
    explicit arena_stacks(std::size_t count) {
        size_ = count * weft::default_stack_size() * scale;
        void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        low_ = static_cast<std::byte*>(mapped);
        for (std::size_t at = size_; at != 0; at -= size_ / count)
            idle_.push_back({low_ + at - size_ / count, size_ / count});
    }
    arena_stacks(const arena_stacks&) = delete;
    arena_stacks& operator=(const arena_stacks&) = delete;
    ~arena_stacks() override { ::munmap(low_, size_); }

    /// Whether what is given back is written over; it is, unless told otherwise.
    void set_wiping(bool wiping) noexcept { wiping_ = wiping; }

    weft::stack take(std::size_t size) override {
        if (idle_.empty() || idle_.back().size < size) throw std::bad_alloc();
        const weft::stack taken = idle_.back();
        idle_.pop_back();
        return taken;
    }

    void give_back(weft::stack taken) noexcept override {
        if (wiping_) std::memset(taken.low, 0, taken.size);
        idle_.push_back(taken);  // within the capacity: all were here in the beginning
    }

private:
    static constexpr std::size_t scale = WEFT_ASAN ? 4 : 2;  // for frames of builds that watch

    std::byte* low_;
    std::size_t size_;
    bool wiping_ = true;
    std::vector<weft::stack> idle_;
};

}  // namespace weft_test
