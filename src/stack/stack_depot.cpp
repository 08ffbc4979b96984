// stack_depot.cpp - reservations, slots and the list of idle stacks.
//
//   one chunk of a size class (address space; memory only where a stack was used)
//   +-------+----------------+-------+----------------+-- - - --+
//   | guard | stack 0        | guard | stack 1        |  not yet cut
//   +-------+----------------+-------+----------------+-- - - --+
//   low                                                      high
//
// A slot gets its guard when it is cut, and keeps it. Each size class has a lock of its own; under
// it are a few pushes and pops, and rarely a system call.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include <weft/base/assert.hpp>

#include "stack/annotate.hpp"
#include "stack/guard.hpp"
#include "stack/overcommit.hpp"
#include "stack/region.hpp"
#include "stack/sizes.hpp"

namespace weft::inline v0 {

namespace {

using detail::guard_size;

// Frames are larger in instrumented and unoptimised code.
constexpr std::size_t scale = WEFT_ASAN ? 4
#if defined(WEFT_CHECKS) && WEFT_CHECKS
                                        : 2;
#else
                              : WEFT_TSAN ? 2
                                          : 1;
#endif
constexpr std::size_t kibibyte = 1024;
constexpr std::array<std::size_t, 4> classes = {16 * kibibyte * scale, 64 * kibibyte* scale,
                                                256 * kibibyte* scale, 1024 * kibibyte* scale};
constexpr std::size_t page = 4 * kibibyte;

struct chunk {
    std::byte* base;
    std::size_t size;
    detail::region* region;
};

chunk reserve(std::size_t size, std::size_t stride) {
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        if (errno == ENOMEM) throw std::bad_alloc();
        throw std::system_error(errno, std::generic_category(),
                                "weft: reserving memory for stacks");
    }
    try {
        return {static_cast<std::byte*>(base), size,
                detail::add_region(static_cast<std::byte*>(base), size, stride)};
    } catch (...) {
        ::munmap(base, size);
        throw;
    }
}

void release(const chunk& gone) noexcept {
    detail::remove_region(gone.region);
    ::munmap(gone.base, gone.size);
}

/// Guards a slot and makes a stack of it.
stack cut(std::byte* slot, std::size_t stride, guard_kind guard) {
    const int error = detail::install_guard(guard, slot);
    if (error != 0)
        throw std::system_error(error, std::generic_category(), "weft: guarding a stack");
    stack fresh{slot + guard_size, stride - guard_size};
    detail::announce_stack(fresh);
    return fresh;
}

std::size_t checked(std::size_t size) {
    detail::require_sensible_size(size);
    return size * scale;
}

// The stacks of one size.
class size_class {
public:
    void configure(std::size_t size, std::size_t chunk_size) noexcept {
        stride_ = size + guard_size;
        chunk_size_ = chunk_size;
    }

    stack take(guard_kind guard) {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) {
            if (next_ == end_) grow();
            const stack fresh = cut(next_, stride_, guard);
            next_ += stride_;
            ++live_;
            return fresh;
        }
        return pop();
    }

    [[nodiscard]] std::size_t take_idle(std::span<stack> into) noexcept {
        const std::lock_guard lock(mutex_);
        const std::size_t count = std::min(into.size(), idle_.size() / 2);
        for (std::size_t i = count; i-- > 0;) into[i] = pop();
        return count;
    }

    void give_back(std::span<const stack> all) noexcept {
        const std::lock_guard lock(mutex_);
        for (const stack& taken : all) {
            WEFT_CHECK(owns(taken), "stack depot: given a stack that it did not hand out");
            WEFT_ASSERT(live_ > 0, "stack depot: given back more stacks than were taken");
            --live_;
            idle_.push_back(taken);  // never allocates: grow() reserved a place for every slot
        }
    }

    std::size_t trim() noexcept {
        const std::lock_guard lock(mutex_);
        const std::size_t trimmed = idle_.size() - trimmed_;
        for (; trimmed_ < idle_.size(); ++trimmed_) {
            ::madvise(idle_[trimmed_].low, idle_[trimmed_].size, MADV_FREE);
            detail::hide_from_leak_search(idle_[trimmed_]);
        }
        return trimmed;
    }

    void count(stack_counters& sum) const noexcept {
        const std::lock_guard lock(mutex_);
        sum.live += live_;
        sum.idle += idle_.size();
        sum.mapped += chunks_.size();
        for (const chunk& c : chunks_) sum.reserved_bytes += c.size;
    }

    void close() noexcept {
        const std::lock_guard lock(mutex_);
        WEFT_ASSERT(live_ == 0, "stack depot: destroyed while stacks of it are in use");
        while (trimmed_ != 0) detail::show_to_leak_search(idle_[--trimmed_]);
        for (const stack& s : idle_) detail::forget_stack(s);
        for (const chunk& c : chunks_) release(c);
    }

private:
    // Of those that are idle the last; there is one.
    stack pop() noexcept {
        const stack warm = idle_.back();
        idle_.pop_back();
        if (idle_.size() < trimmed_) {
            trimmed_ = idle_.size();
            detail::show_to_leak_search(warm);
        }
        ++live_;
        return warm;
    }

    // A gigabyte if it can be had; less, down to a single slot, where address space is limited, or
    // memory that may be locked (EAGAIN).
    void grow() {
        const std::size_t most = detail::chunk_size_here(chunk_size_);
        std::size_t size = std::max(most / stride_, std::size_t{1}) * stride_;
        for (;;) {
            try {
                add(reserve(size, stride_));
                return;
            } catch (const std::exception&) {
                if (size == stride_) throw;
                size = std::max(size / 4 / stride_, std::size_t{1}) * stride_;
            }
        }
    }

    void add(const chunk& fresh) {
        try {
            const std::size_t slots = slots_ + fresh.size / stride_;
            if (idle_.capacity() < slots) idle_.reserve(std::max(slots, 2 * idle_.capacity()));
            chunks_.push_back(fresh);
            slots_ = slots;
        } catch (...) {
            release(fresh);
            throw;
        }
        next_ = fresh.base;
        end_ = fresh.base + fresh.size / stride_ * stride_;
    }

    [[nodiscard]] bool owns(const stack& taken) const noexcept {
        return std::ranges::any_of(chunks_, [&](const chunk& c) {
            return taken.low >= c.base && taken.low < c.base + c.size &&
                   static_cast<std::size_t>(taken.low - c.base) % stride_ == guard_size &&
                   taken.size == stride_ - guard_size;
        });
    }

    mutable std::mutex mutex_;
    // Guarded by mutex_, but for the first two, which are set before anybody else knows of it.
    std::size_t stride_ = 0;
    std::size_t chunk_size_ = 0;
    std::byte* next_ = nullptr;  // the first slot that was not cut yet
    std::byte* end_ = nullptr;
    std::vector<stack> idle_;
    std::size_t trimmed_ = 0;  // how many of idle_, from the front, were trimmed
    std::size_t live_ = 0;
    std::size_t slots_ = 0;
    std::vector<chunk> chunks_;
};

}  // namespace

struct stack_depot::implementation {
    guard_kind guard;
    std::array<size_class, classes.size()> pooled;
    // Stacks larger than any class, each a mapping of its own, by its lowest address.
    mutable std::mutex mutex;
    std::map<const std::byte*, chunk> large;

    stack take_large(std::size_t size) {
        const std::size_t stride = (size + page - 1) / page * page + guard_size;
        const std::lock_guard lock(mutex);
        const chunk fresh = reserve(stride, stride);
        try {
            large.emplace(fresh.base, fresh);
            return cut(fresh.base, stride, guard);
        } catch (...) {
            large.erase(fresh.base);
            release(fresh);
            throw;
        }
    }

    void give_back_large(stack taken) noexcept {
        const std::lock_guard lock(mutex);
        const auto found = large.find(taken.low - guard_size);
        WEFT_ASSERT(found != large.end(), "stack depot: given a stack that it did not hand out");
        detail::forget_stack(taken);
        release(found->second);
        large.erase(found);
    }
};

const std::array<std::size_t, 4>& stack_depot::size_classes() noexcept { return classes; }

stack_depot::stack_depot(stack_depot_options options)
    : implementation_(std::make_unique<implementation>()) {
    implementation_->guard = detail::choose_guard(options.guard);
    for (std::size_t i = 0; i < classes.size(); ++i)
        implementation_->pooled[i].configure(classes[i], options.chunk_size);
}

stack_depot::~stack_depot() {
    WEFT_ASSERT(implementation_->large.empty(),
                "stack depot: destroyed while stacks of it are in use");
    for (size_class& c : implementation_->pooled) c.close();
}

stack stack_depot::take(std::size_t size) {
    const std::size_t wanted = checked(size);
    for (std::size_t i = 0; i < classes.size(); ++i)
        if (wanted <= classes[i]) return implementation_->pooled[i].take(implementation_->guard);
    return implementation_->take_large(wanted);
}

std::size_t stack_depot::take_idle(std::size_t size, std::span<stack> into) noexcept {
    for (std::size_t i = 0; i < classes.size(); ++i)
        if (size <= classes[i] / scale) return implementation_->pooled[i].take_idle(into);
    return 0;
}

void stack_depot::give_back(stack taken) noexcept { give_back_all({&taken, 1}); }

// Those of one size in a row are given back together.
void stack_depot::give_back_all(std::span<const stack> taken) noexcept {
    while (!taken.empty()) {
        const std::size_t size = taken.front().size;
        const auto other =
            std::ranges::find_if(taken, [size](const stack& each) { return each.size != size; });
        const auto alike = taken.first(static_cast<std::size_t>(other - taken.begin()));
        const auto pooled = std::ranges::find(classes, size);
        if (pooled != classes.end())
            implementation_->pooled[static_cast<std::size_t>(pooled - classes.begin())].give_back(
                alike);
        else
            for (const stack& each : alike) implementation_->give_back_large(each);
        taken = taken.subspan(alike.size());
    }
}

std::size_t stack_depot::trim() noexcept {
    std::size_t trimmed = 0;
    for (size_class& c : implementation_->pooled) trimmed += c.trim();
    return trimmed;
}

stack_counters stack_depot::counters() const noexcept {
    stack_counters sum;
    sum.guard = implementation_->guard;
    for (const size_class& c : implementation_->pooled) c.count(sum);
    const std::lock_guard lock(implementation_->mutex);
    sum.live += implementation_->large.size();
    sum.mapped += implementation_->large.size();
    for (const auto& [low, c] : implementation_->large) sum.reserved_bytes += c.size;
    return sum;
}

// Never destroyed: stacks may be given back by destructors of other statics. LSan, which looks when
// the program ends, is spared the idle ones: it would have every page of them made.
stack_depot& shared_stack_depot() noexcept {
    static stack_depot& depot = []() -> stack_depot& {
        if (WEFT_ASAN) std::atexit([] { shared_stack_depot().trim(); });
        return *new stack_depot;
    }();
    return depot;
}

std::size_t stack_source::take_idle(std::size_t, std::span<stack>) noexcept { return 0; }

void stack_source::give_back_all(std::span<const stack> taken) noexcept {
    for (const stack& each : taken) give_back(each);
}

stack_source& shared_stacks() noexcept { return shared_stack_depot(); }

std::size_t default_stack_size() noexcept { return classes[1] / scale; }

}  // namespace weft::inline v0
