// annotate.cpp - see annotate.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/annotate.hpp"

#include <map>
#include <mutex>
#include <new>

#include "base/valgrind.hpp"
#include "stack/region.hpp"

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#endif
#if WEFT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::inline v0::detail {

namespace {

// valgrind searches its list of stacks at every change of the stack pointer, so one that is gone
// goes from the list as well, by the number that it got there. Used under valgrind only.
class valgrind_stacks {
public:
    // Never destroyed: stacks may be given back by destructors of other statics.
    static valgrind_stacks& all() {
        static valgrind_stacks& only = *new valgrind_stacks;
        return only;
    }

    void add(const stack& fresh) {
        const std::lock_guard lock(mutex_);
        const auto place = numbers_.emplace(fresh.low, 0U);
        place->second = VALGRIND_STACK_REGISTER(fresh.low, fresh.high());
    }

    void remove(const stack& gone) noexcept {
        const std::lock_guard lock(mutex_);
        const auto place = numbers_.find(gone.low);
        if (place == numbers_.end()) return;
        VALGRIND_STACK_DEREGISTER(place->second);
        numbers_.erase(place);
        // What lay below the last stack pointer is gone for it, and is the owner's again.
        static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(gone.low, gone.size));
    }

private:
    std::mutex mutex_;
    std::multimap<std::byte*, unsigned> numbers_;
};

void announce_memory(const stack& fresh) {
    if (RUNNING_ON_VALGRIND != 0) valgrind_stacks::all().add(fresh);
    show_to_leak_search(fresh);
}

void forget_memory(const stack& gone) noexcept {
    if (RUNNING_ON_VALGRIND != 0) valgrind_stacks::all().remove(gone);
    hide_from_leak_search(gone);
#if WEFT_ASAN
    __asan_unpoison_memory_region(gone.low, gone.size);
#endif
}

// Asked once: it takes longer than a cached stack.
const bool on_valgrind = [] { return RUNNING_ON_VALGRIND != 0; }();

// A depot's is known, also if a source of the user's hands it on.
[[nodiscard]] bool is_unknown(const stack& taken) noexcept {
    if (!WEFT_ASAN && !on_valgrind) [[likely]]
        return false;
    return !is_in_region(taken.low);
}

}  // namespace

void announce_stack(stack& fresh) {
    announce_memory(fresh);
#if WEFT_TSAN
    fresh.tsan_fiber = __tsan_create_fiber(0);
    if (fresh.tsan_fiber == nullptr) throw std::bad_alloc();
#endif
}

void forget_stack(const stack& gone) noexcept {
    forget_memory(gone);
#if WEFT_TSAN
    __tsan_destroy_fiber(gone.tsan_fiber);
#endif
}

void hide_from_leak_search([[maybe_unused]] const stack& trimmed) noexcept {
#if WEFT_ASAN
    __lsan_unregister_root_region(trimmed.low, trimmed.size);
#endif
}

void show_to_leak_search([[maybe_unused]] const stack& used_again) noexcept {
#if WEFT_ASAN
    __lsan_register_root_region(used_again.low, used_again.size);
#endif
}

stack take_known(stack_source& source, std::size_t size) {
    const stack taken = source.take(size);
    if (is_unknown(taken)) [[unlikely]] {
        try {
            announce_memory(taken);
        } catch (...) {
            source.give_back(taken);
            throw;
        }
    }
    return taken;
}

void give_back_known(stack_source& source, const stack& taken) noexcept {
    if (is_unknown(taken)) [[unlikely]]
        forget_memory(taken);
    source.give_back(taken);
}

}  // namespace weft::inline v0::detail
