// fiber_birth.cpp - control blocks: made with their callable, counted, freed.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>

#include <weft/base/assert.hpp>
#include <weft/base/errc.hpp>
#include <weft/fiber/detail/birth.hpp>

#include "fiber/fiber_census.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_life.hpp"
#include "fiber/task_values.hpp"
#include "stack/sizes.hpp"

namespace weft::inline v0::detail {

namespace {

// With that its block is one that a census finds.
constexpr std::size_t small_callable = largest_block - sizeof(own_fiber) - 2 * fiber_marks::unit;

// nullptr: the worker's own.
stack_source* stacks_for(const executor& home, const birth& how) noexcept {
    return how.options.stacks != nullptr ? how.options.stacks : home.stacks();
}
}  // namespace

runnable* fiber_block::resumed_as_wrapped() noexcept { return extras->resumed_as; }

namespace {

template <class Block>
[[gnu::always_inline]] inline fiber_block* construct(void* memory, executor& home, const birth& how,
                                                     fiber_marks marks) noexcept {
    auto* const block = ::new (memory) Block(home, how, marks);
    if constexpr (std::is_same_v<Block, own_fiber> && requires { block->where.registers_; })
        block->touches_offset = static_cast<std::uint16_t>(
            reinterpret_cast<std::byte*>(&block->where) - reinterpret_cast<std::byte*>(block));
    return block;
}

// None is smaller than one of kind own, so that a census finds it.
std::size_t size_of(stack_kind kind) {
    switch (kind) {
        case stack_kind::own:
            return sizeof(own_fiber);
        case stack_kind::ucontext:
            return std::max(sizeof(ucontext_fiber), sizeof(own_fiber));
        case stack_kind::thread:
            return std::max(sizeof(thread_fiber), sizeof(own_fiber));
        case stack_kind::swapped:
            return std::max(sizeof(swapped_fiber), sizeof(own_fiber));
    }
    throw std::invalid_argument("weft: fiber_options::kind is none of the four");
}

fiber_block* construct(stack_kind kind, void* memory, executor& home, const birth& how,
                       fiber_marks marks) noexcept {
    switch (kind) {
        case stack_kind::own:
            return construct<own_fiber>(memory, home, how, marks);
        case stack_kind::ucontext:
            return construct<ucontext_fiber>(memory, home, how, marks);
        case stack_kind::thread:
            return construct<thread_fiber>(memory, home, how, marks);
        case stack_kind::swapped:
            break;
    }
    return construct<swapped_fiber>(memory, home, how, marks);
}

// What its callable says.
[[nodiscard]] std::uint8_t marks_of(const birth& how) noexcept {
    return static_cast<std::uint8_t>((how.is_child ? fiber_marks::of_group : 0) |
                                     (how.is_trivial ? fiber_marks::trivial : 0));
}

fiber_block* construct_as_told(void* memory, executor& home, const birth& how,
                               std::uint8_t callable_at) noexcept {
    const fiber_options& told = how.options;
    fiber_marks marks{callable_at, 0};
    if (told.pinned || told.worker) marks.marks |= fiber_marks::stays_put;
    if (stacks_for(home, how) == nullptr && told.stack_size == 0)
        marks.marks |= fiber_marks::common_stack;
    marks.marks |= marks_of(how);
    fiber_block* const block = construct(told.kind, memory, home, how, marks);
    block->runnable::kind = static_cast<std::uint8_t>(told.kind);
    block->set_stack_size(told.stack_size);
    if (told.worker && home.workers() > 1)
        block->bound_to = static_cast<std::uint16_t>(*told.worker + 1);
    return block;
}

[[gnu::noinline]] void destroy(fiber_block& block) noexcept {
    switch (block.stack()) {
        case stack_kind::own:
            return static_cast<own_fiber&>(block).~own_fiber();
        case stack_kind::ucontext:
            return static_cast<ucontext_fiber&>(block).~ucontext_fiber();
        case stack_kind::thread:
            return static_cast<thread_fiber&>(block).~thread_fiber();
        case stack_kind::swapped:
            return static_cast<swapped_fiber&>(block).~swapped_fiber();
    }
}

block_cache* blocks_here() noexcept {
    fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr && worker->attachment != nullptr ? &worker->attachment->blocks
                                                              : nullptr;
}

}  // namespace

void* take_memory(std::size_t size) {
    block_cache* const cache = blocks_here();
    return cache != nullptr ? cache->take(size) : take_block(size);
}

namespace {

[[gnu::always_inline]] inline void give(void* memory, std::size_t size) noexcept {
    if (block_cache* const cache = blocks_here())
        cache->give_back(memory, size);
    else
        give_back_block(memory, size);
}

}  // namespace

void give_memory(void* memory, std::size_t size) noexcept { give(memory, size); }

namespace {

// Like blocks: every fiber that opens a group has them.
[[gnu::noinline]] void free_extras(fiber_extras* extras) noexcept {
    extras->~fiber_extras();
    give_memory(extras, sizeof *extras);
}

[[gnu::noinline]] void free_all_it_has(fiber_block* block) noexcept {
    const std::size_t size = block->allocated;
    if (block->extras != nullptr) free_extras(block->extras);
    release_values(block->values);
    if (block->stack() != stack_kind::own || !std::is_trivially_destructible_v<own_fiber>)
        destroy(*block);
    give(block, size);
}

[[gnu::always_inline]] inline void free_block_memory(fiber_block* block) noexcept {
    const bool is_bare =
        block->extras == nullptr && block->values == nullptr && block->stack() == stack_kind::own;
    if (!is_bare || !std::is_trivially_destructible_v<own_fiber>) return free_all_it_has(block);
    give(block, block->allocated);
}

}  // namespace

namespace {
// Whether it is one of that executor's threads that asks, whatever it runs: a fiber, or what has
// been posted, or a fiber of a loop that one of its fibers runs.
bool runs_here(const executor& home) noexcept {
    const worker* w = this_thread_block().runs_for;
    while (w != nullptr && &w->home != &home) w = w->outer;
    return w != nullptr;
}

// What another source than ours can do, it says itself, when the stack is taken.
void refuse_stack_size(const executor& home, const birth& how) {
    const std::size_t size = how.options.stack_size;
    if (size == 0 || stacks_for(home, how) != nullptr) return;
    if (size < smallest_size || size > largest_size)
        throw std::invalid_argument("weft: fiber_options::stack_size of " + std::to_string(size) +
                                    " bytes makes no sense");
}
}  // namespace

namespace {

// Where the callable is that is aligned as most are.
constexpr std::size_t most_aligned = 2 * fiber_marks::unit;
constexpr std::size_t plain_offset =
    (sizeof(own_fiber) + most_aligned - 1) / most_aligned * most_aligned;

// Nothing was told, nothing is special: what most are.
[[gnu::always_inline]] inline fiber_block* allocate_plain(executor& home, const birth& how) {
    constexpr auto callable_at = static_cast<std::uint8_t>(plain_offset / fiber_marks::unit);
    const std::size_t size = plain_offset + how.size;
    fiber_worker* const worker = fiber_worker::here();
    void* const memory = worker != nullptr && worker->attachment != nullptr
                             ? worker->attachment->blocks.take(size)
                             : take_block(size);
    fiber_block* const block = construct<own_fiber>(
        memory, home, how,
        {callable_at, static_cast<std::uint8_t>(fiber_marks::common_stack | marks_of(how))});
    block->runnable::kind = static_cast<std::uint8_t>(stack_kind::own);
    block->allocated = static_cast<std::uint32_t>(size);
    if (worker != nullptr && worker->current != nullptr && worker->current->values != nullptr)
        [[unlikely]]
        block->values = inherited_values();
    return block;
}

[[gnu::always_inline]] inline bool is_plain(const executor& home, const birth& how) noexcept {
    return (&how.options == &nothing_told || tells_nothing(how.options)) && !how.has_handle &&
           how.size <= small_callable && how.alignment <= most_aligned &&
           home.stacks() == nullptr && home.residents_.load(std::memory_order_acquire) != nullptr &&
           !home.stopping_.load(std::memory_order_acquire);
}

fiber_block* allocate_as_told(executor& home, const birth& how);

[[gnu::noinline, gnu::cold]] newborn allocate_child_as_told(executor& home,
                                                            const fiber_options& options,
                                                            const child_birth& child,
                                                            std::source_location site) {
    fiber_block* const block = allocate_as_told(
        home, {options, child.size, child.alignment, child.operate, false, true, true, site});
    return {block, block->callable()};
}

}  // namespace

fiber_block* allocate_fiber(executor& home, const birth& how) {
    if (is_plain(home, how)) [[likely]]
        return allocate_plain(home, how);
    return allocate_as_told(home, how);
}

newborn allocate_child(executor& home, const fiber_options& options, const child_birth& child,
                       std::source_location site) {
    const birth how{options, child.size, child.alignment, child.operate, false, true, true, site};
    if (!is_plain(home, how)) [[unlikely]]
        return allocate_child_as_told(home, options, child, site);
    fiber_block* const block = allocate_plain(home, how);
    return {block, reinterpret_cast<std::byte*>(block) + plain_offset};
}

namespace {

[[gnu::noinline]] fiber_block* allocate_as_told(executor& home, const birth& how) {
    const std::size_t alignment = std::max(how.alignment, fiber_marks::unit);
    const std::size_t fixed = size_of(how.options.kind);
    if (alignment > block_step)
        throw std::invalid_argument("weft: a fiber's callable is aligned to more than 64 bytes");
    if (how.options.worker && *how.options.worker >= home.workers())
        throw std::invalid_argument("weft: fiber_options::worker: there is no such worker");
    refuse_stack_size(home, how);
    if (fiber_list::of(home).stopping() && !runs_here(home))
        throw std::system_error(make_error_code(errc::shutdown), "weft: go");
    const std::size_t offset = (fixed + alignment - 1) / alignment * alignment;
    const std::size_t size = offset + how.size;
    if (size > 0xffffffff) throw std::invalid_argument("weft: a fiber's callable of 4 GiB or more");
    fiber_block* const block = construct_as_told(
        take_memory(size), home, how, static_cast<std::uint8_t>(offset / fiber_marks::unit));
    block->allocated = static_cast<std::uint32_t>(size);
    block->values = inherited_values();
    if (size > largest_block) block->marks |= fiber_marks::far;
    // What may be needed where nothing can fail is made here.
    stack_source* const stacks = stacks_for(home, how);
    if (how.options.name.empty() && stacks == nullptr && !how.has_handle) return block;
    try {
        fiber_extras& extras = extras_of(*block);
        extras.name = how.options.name;
        extras.stacks = stacks;
        block->activity::name = extras.name.c_str();
        if (!holds_its_name(extras)) block->marks |= fiber_marks::far;
    } catch (...) {
        free_block_memory(block);
        throw;
    }
    return block;
}

}  // namespace

void* callable_of(fiber_block& block) noexcept { return block.callable(); }

void discard_fiber(fiber_block* block) noexcept { free_block_memory(block); }

namespace {

// On a pool the one that was started last runs first, and what it starts before its elders: so a
// tree of fibers is walked in depth, and few of them are alive at a time.
[[gnu::noinline]] void start_somewhere(fiber_block& block, worker* here) noexcept {
    executor& home = *block.home;
    if (block.is_far()) fiber_list::of(home).add(block);
    block.reason.store(nullptr, std::memory_order_release);  // a census finds it from now on
    const bool at_home = here != nullptr && &here->home == &home;
    if (at_home && here->is_loop(home)) {
        ++here->work;
        return here->ready.push(&block);
    }
    home.add_work(1);
    if (at_home && here->number != 0)
        block.is_child() ? here->start_child(&block) : here->start(&block);
    else
        home.post(&block);
}

}  // namespace

void start_fiber(fiber_block& block) noexcept {
    worker* const here = this_thread_block().runs_for;
    if (here == nullptr || &here->home != block.home || here->number == 0 || !block.is_child() ||
        block.is_far())
        return start_somewhere(block, here);
    block.reason.store(nullptr, std::memory_order_release);  // as above
    here->count_work(1);
    here->start_child(&block);
}

executor& current_executor(const char* call) noexcept {
    fiber_worker* const fibers = fiber_worker::here();
    if (fibers != nullptr && fibers->current != nullptr) return *fibers->current->home;
    const worker* const here = this_thread_block().runs_for;
    if (here == nullptr) fail("called outside any executor, and none was named", call);
    return here->home;
}

fiber_block& running_fiber(const char* call) noexcept {
    fiber_worker* const worker = fiber_worker::here();
    if (worker == nullptr || worker->current == nullptr) fail("called outside any fiber", call);
    return *worker->current;
}

fiber_extras& extras_of(fiber_block& block) {
    if (block.extras == nullptr) {
        auto* const made = ::new (take_memory(sizeof(fiber_extras))) fiber_extras;
        const block_lock lock(block);  // request_stop() may look at it
        block.extras = made;
    }
    return *block.extras;
}

void add_reference(fiber_block& block) noexcept {
    block.references.fetch_add(1, std::memory_order_relaxed);
}

// acq_rel: what each holder did happens before the end. The only one left needs no locked
// operation.
void release(fiber_block* block) noexcept {
    if (block->references.load(std::memory_order_acquire) == 1 ||
        block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
        free_block_memory(block);
}

}  // namespace weft::inline v0::detail
