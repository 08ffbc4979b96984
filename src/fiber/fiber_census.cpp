// fiber_census.cpp - see fiber_census.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/fiber_census.hpp"

#include <bit>
#include <functional>
#include <new>

#include <weft/base/sanitizer.hpp>

#include "fiber/block_depot.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

// What else comes from the same memory: see may_hold_fiber().
static_assert(!may_hold_fiber((sizeof(fiber_extras) + block_step - 1) / block_step * block_step));
static_assert(!may_hold_fiber((sizeof(wait_timer) + block_step - 1) / block_step * block_step));

namespace {

// No sanitizer is asked: others may be writing there.
template <class T>
WEFT_NO_SANITIZE T look(const T* at, int order = __ATOMIC_RELAXED) noexcept {
    T seen;
    __atomic_load(at, &seen, order);
    return seen;
}

template <class T>
WEFT_NO_SANITIZE T look(const std::atomic<T>* at, int order = __ATOMIC_RELAXED) noexcept {
    static_assert(sizeof(std::atomic<T>) == sizeof(T));
    return look(reinterpret_cast<const T*>(at), order);
}

// Where the fields are that are compared.
struct identity {
    const executor* home;
    const char* name;
    const fiber_extras* extras;
    std::source_location site;
};

WEFT_NO_SANITIZE identity identity_of(const fiber_block& block) noexcept {
    return {look(&block.home), look(&block.activity::name), look(&block.extras), look(&block.site)};
}

bool is_same(const identity& a, const identity& b) noexcept {
    return a.home == b.home && a.name == b.name && a.extras == b.extras &&
           std::bit_cast<const void*>(a.site) == std::bit_cast<const void*>(b.site);
}

// Of one that is not listed: there it lies in the extras, if it has one.
WEFT_NO_SANITIZE void copy_name(const identity& from, std::array<char, 16>& to) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(from.extras);
    const auto at = reinterpret_cast<std::uintptr_t>(from.name);
    if (from.extras == nullptr || at < begin || at + to.size() > begin + sizeof(fiber_extras))
        return;
    for (std::size_t i = 0; i + 1 < to.size(); ++i) {
        to[i] = look(from.name + i);
        if (to[i] == '\0') return;
    }
}

WEFT_NO_SANITIZE const wait_reason* reason_of(const fiber_block& block) noexcept {
    const wait_reason* const reason = look(&block.reason, __ATOMIC_ACQUIRE);
    if (reason == &no_fiber) return reason;  // what was only cut has nothing else set
    static_assert(sizeof(block.state) == sizeof(std::uint32_t));
    const auto word = look(reinterpret_cast<const std::uint32_t*>(&block.state));
    return meant_by(reason, wait_state::says_waiting(word));
}

WEFT_NO_SANITIZE const executor* home_of(const fiber_block& block) noexcept {
    return look(&block.home);
}

// False: it is no fiber, or something of it changed meanwhile.
WEFT_NO_SANITIZE bool look_once(const fiber_block& block, fiber_sight& seen) noexcept {
    seen = {};
    seen.reason = reason_of(block);
    if (seen.reason == &no_fiber) return false;
    const identity before = identity_of(block);
    seen.home = before.home;
    seen.site = before.site;
    seen.started = (look(&block.runnable::kind) & started_bit) != 0;
    seen.listed = look(&block.is_listed);
    if (!seen.listed) copy_name(before, seen.name);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (!is_same(before, identity_of(block))) return false;
    seen.reason = reason_of(block);
    return seen.reason != &no_fiber;
}

}  // namespace

// Again, for one that got its extras at that moment, or whose place another has taken.
bool look_at(const fiber_block& block, fiber_sight& seen) noexcept {
    for (int times = 0; times < 3; ++times)
        if (look_once(block, seen)) return true;
    return false;
}

WEFT_NO_SANITIZE const fiber_block* running_on(const fiber_worker& worker) noexcept {
    return look(&worker.current);
}

WEFT_NO_SANITIZE void mark_no_fiber(void* block) noexcept {
    ::new (&static_cast<fiber_block*>(block)->reason) std::atomic<const wait_reason*>(&no_fiber);
}

bool holds_its_name(const fiber_extras& extras) noexcept {
    const auto* const begin = reinterpret_cast<const char*>(&extras);
    const char* const at = extras.name.c_str();
    return !std::less<>()(at, begin) && std::less<>()(at, begin + sizeof extras);
}

std::vector<fiber_place> find_fibers(const executor* home) {
    std::vector<fiber_place> found;
    for (const block_chunk* chunk = block_chunks(); chunk != nullptr; chunk = chunk->next) {
        if (!may_hold_fiber(chunk->block_size)) continue;
        for (std::size_t i = 0; i < chunk->blocks; ++i) {
            const auto& block =
                *reinterpret_cast<const fiber_block*>(chunk->memory + i * chunk->block_size);
            if (reason_of(block) == &no_fiber) continue;
            const executor* const of = home_of(block);
            if (home == nullptr || of == home) found.push_back({of, &block});
        }
    }
    return found;
}

}  // namespace weft::inline v0::detail
