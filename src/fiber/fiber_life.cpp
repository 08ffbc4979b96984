// fiber_life.cpp - a fiber gets a stack, runs its function, ends.
//
// A fiber has a stack from its first run to its end. One that ends hands it to the next if that has
// not started: then nothing is switched at all, the same loop on the same stack calls the next
// function (own_entry in fiber_switch.cpp).
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/fiber_life.hpp"

#include <cstdlib>
#include <exception>
#include <expected>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <weft/base/assert.hpp>
#include <weft/stack/overflow.hpp>

#include "base/report.hpp"
#include "fiber/fiber_census.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/task_values.hpp"
#include "stack/annotate.hpp"

namespace weft::inline v0::detail {

// --- an exception that nobody takes

namespace {

std::terminate_handler terminate_before = nullptr;
std::atomic<bool> told = false;  // whose exception it is that terminates

// ": " and what it says of itself. What value() throws says nothing, but has an error that does.
void tell_what(report& line, const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::bad_expected_access<std::error_code>& failed) {
        line.text(": ").text(failed.error().message().c_str());
    } catch (const std::exception& known) { line.text(": ").text(known.what()); } catch (...) {
    }
}

void tell_whose(const fiber_block& block, const std::exception_ptr& error) noexcept {
    const char* const name = static_cast<const activity&>(block).name;
    report line;
    line.text(error != nullptr ? "weft: fiber '" : "weft: terminate in fiber '");
    line.text(*name != 0 ? name : "(no name)").text("'");
    if (error != nullptr) {
        line.text(" ended with an exception that nobody could take");
        tell_what(line, error);
    }
    line.text("\n").write();
}

// Outside of fibers, as in main() by what left run(): what std::terminate would not name.
void tell_error(const std::exception_ptr& error) noexcept {
    try {
        if (error != nullptr) std::rethrow_exception(error);
    } catch (const std::bad_expected_access<std::error_code>&) {
        report line;
        line.text("weft: value() of a result that is an error, which nobody took");
        tell_what(line, error);
        line.text("\n").write();
    } catch (...) {}
}

// Terminate happens at the throw, with the stack as it was; here it is said whose stack that is.
[[noreturn]] void name_fiber_and_terminate() {
    const fiber_worker* const worker = fiber_worker::here();
    const bool in_fiber = worker != nullptr && worker->current != nullptr;
    if (!told.exchange(true)) {
        if (in_fiber)
            tell_whose(*worker->current, std::current_exception());
        else
            tell_error(std::current_exception());
    }
    terminate_before();
    std::abort();
}

}  // namespace

void give_to_nobody(fiber_block& ended, std::exception_ptr error) noexcept {
    if (!ended.home->takes_exceptions() && !told.exchange(true)) tell_whose(ended, error);
    ended.home->unhandled(std::move(error), ended);
}

void name_fibers_at_terminate() noexcept {
    static const bool once = [] {
        terminate_before = std::set_terminate(&name_fiber_and_terminate);
        return true;
    }();
    static_cast<void>(once);
}

// --- the first run

namespace {

weft::stack take_stack(fiber_worker& worker, fiber_block& block) {
    stack_source* const own = block.extras != nullptr ? block.extras->stacks : nullptr;
    const std::size_t size = block.stack_size() != 0 ? block.stack_size() : default_stack_size();
    return own != nullptr ? take_known(*own, size) : worker.stacks.take(size);
}

void give_back_stack(fiber_worker& worker, fiber_block& block) noexcept {
    weft::stack used{block.stack_low, block.stack_size(), nullptr};
#if WEFT_TSAN
    used.tsan_fiber = block.tsan_fiber;
#endif
    stack_source* const own = block.extras != nullptr ? block.extras->stacks : nullptr;
    if (own != nullptr) return give_back_known(*own, used);
    worker.stacks.give_back(used);  // of the depot
}

// Tops of stacks at the same place in each page would share few cache lines' worth of sets.
constexpr std::size_t colour_step = 64;
constexpr std::uint32_t colours = 32;  // two kilobytes of the first page

template <class Block>
void prepare_context(fiber_worker& worker, Block& block, context_entry entry) {
    const weft::stack taken = take_stack(worker, block);
    const std::size_t wanted = block.stack_size();
    block.set_stack(taken.low, taken.size);
#if WEFT_TSAN
    block.tsan_fiber = taken.tsan_fiber;
#endif
    const std::size_t colour = colour_step * (worker.colours++ % colours);
    using made = typename Block::context_type;
    try {
        static_cast<made&>(block.where) =
            made::make(taken.span().first(taken.size - colour), entry,
                       static_cast<fiber_block*>(&block), {.tsan_fiber = taken.tsan_fiber});
    } catch (...) {  // as if it had not been taken
        give_back_stack(worker, block);
        block.set_stack(nullptr, wanted);
        throw;
    }
    worker.count_stack(1);
}

void prepare_thread(fiber_worker& worker, thread_fiber& block) {
    coroutine_options options;
    if (block.stack_size() != 0) options.stack_size = block.stack_size();
    if (worker.attachment != nullptr) options.threads = &worker.attachment->threads();
    block.where = std::make_unique<thread_backend>(options, &thread_entry,
                                                   static_cast<fiber_block*>(&block), block);
}

void prepare_swapped(fiber_worker& worker, swapped_fiber& block) {
    if (worker.attachment == nullptr)
        throw std::invalid_argument("weft: a swapped fiber needs a loop or a pool");
    shared_stack& shared = worker.attachment->next_shared();
    block.place.attach(shared);
    block.set_stack(shared.where().low, shared.where().size);
}

// The function never runs; what was to be called is destroyed.
void end_unstarted(fiber_worker& worker, fiber_block& block) noexcept;

}  // namespace

namespace {

void prepare_by_kind(fiber_worker& worker, fiber_block& block) {
    switch (block.stack()) {
        case stack_kind::own:
            return prepare_context(worker, static_cast<own_fiber&>(block), &own_entry);
        case stack_kind::ucontext:
            return prepare_context(worker, static_cast<ucontext_fiber&>(block), &ucontext_entry);
        case stack_kind::thread:
            return prepare_thread(worker, static_cast<thread_fiber&>(block));
        case stack_kind::swapped:
            return prepare_swapped(worker, static_cast<swapped_fiber&>(block));
    }
}

// A swapped fiber lives on this worker's stack, a pinned one was promised its thread.
void bind_if_it_stays(const fiber_worker& worker, fiber_block& block) noexcept {
    if (block.pinned() || block.stack() == stack_kind::swapped) block.bound_to = worker.exec.number;
}

}  // namespace

bool prepare(fiber_worker& worker, fiber_block& block) noexcept {
    if (!this_thread_block().overflow_ready) prepare_thread_for_overflow();
    // Between a vain look for a stack and the question whether one is out, the last may have come
    // back, or gone to another: so it is asked several times before that is the answer.
    constexpr int most_attempts = 16;
    for (int attempt = 1;; ++attempt) {
        try {
            prepare_by_kind(worker, block);
            bind_if_it_stays(worker, block);
            block.runnable::kind |= started_bit;
            return true;
        } catch (const std::logic_error&) {  // what it was told makes no sense, and never will
            give_to_nobody(block, std::current_exception());
            break;
        } catch (...) {
            if (fiber_list::of(*block.home).hungry.wait(block)) return false;
            if (attempt < most_attempts && worker.exec.shared != nullptr) {
                std::this_thread::yield();
                continue;
            }
            give_to_nobody(block, std::current_exception());
            break;
        }
    }
    end_unstarted(worker, block);
    return false;
}

// --- the body

namespace {

// Only `cancelled` is caught here: anything else finds no handler, so that terminate is called at
// the throw, with the stack as it was.
[[gnu::always_inline]] inline void run_bare(fiber_block& me) {
    try {
        me.operate(me.callable(), birth_operation::run);
    } catch (const cancelled&) {}
}

// Not inlined: the frame of the one below would keep room for it, also of swapped fibers.
[[gnu::noinline, gnu::cold]] void take_exception(fiber_block& me) {
    if (!me.has_handle)
        me.home->unhandled(std::current_exception(), me);
    else
        extras_of(me).error = std::current_exception();
}

[[gnu::always_inline]] inline void run_catching(fiber_block& me) {
    try {
        me.operate(me.callable(), birth_operation::run);
    } catch (const cancelled&) {
    } catch (...) { take_exception(me); }
}

[[gnu::noinline]] void destroy_locals(fiber_block& me) noexcept {
    while (!me.extras->locals.empty()) {
        const fiber_extras::local last = me.extras->locals.back();
        me.extras->locals.pop_back();
        last.destroy(last.value);
    }
}

// What one of these destroys may have made others.
[[gnu::noinline]] void end_extras(fiber_block& me) noexcept {
    do {
        finish_hooks(me);
        destroy_locals(me);
    } while (me.extras->top_hook != nullptr);
}

// From here on no report has it.
void forget(fiber_block& me) noexcept {
    if (me.is_listed) fiber_list::remove(me);
    end_in_census(me);
}

// Everything that can be waited for, done on the fiber itself, before its stack goes.
[[gnu::always_inline]] inline void finish(fiber_block& me) noexcept {
    WEFT_ASSERT(me.isolated.held == nullptr, "actor_context: a fiber ended inside of one");
    if (!me.is_trivial()) me.operate(me.callable(), birth_operation::destroy);
    if (me.extras != nullptr) destroy_locals(me);
    if (me.values != nullptr) release_values(std::exchange(me.values, nullptr));
    if (me.extras != nullptr) end_extras(me);
    forget(me);
}

// Whether somebody may want to know of its end.
[[gnu::always_inline]] inline bool is_known(const fiber_block& me) noexcept {
    return me.references.load(std::memory_order_acquire) != 1 || me.has_handle ||
           (me.extras != nullptr && me.extras->error != nullptr);
}

// From here on join() returns.
[[gnu::noinline]] void complete(fiber_block& me) noexcept {
    waiter* woken = nullptr;
    std::exception_ptr nobodys;
    {
        const block_lock lock(me);
        me.finished = true;
        if (me.extras != nullptr) {
            waiter* const joiner = std::exchange(me.extras->joiner, nullptr);
            if (joiner != nullptr && joiner->claim()) woken = joiner;
            if (!me.has_handle) std::swap(nobodys, me.extras->error);
        }
    }
    if (nobodys != nullptr) give_to_nobody(me, std::move(nobodys));
    if (woken != nullptr) woken->wake();
}

[[gnu::always_inline]] inline void live_here(fiber_block& me) {
    if (me.home->stopping_.load(std::memory_order_acquire)) [[unlikely]]
        request_stop(me, cancel_reason::shutdown);
    if (me.is_child()) {
        if (me.group().reason.load(std::memory_order_acquire) != cancel_reason::none) [[unlikely]]
            enlist(me);
        me.operate(me.callable(), birth_operation::run);
    } else if (me.has_handle || me.home->takes_exceptions()) {
        run_catching(me);
    } else {
        run_bare(me);
    }
    finish(me);
}

}  // namespace

void live_on(fiber_block& me) { live_here(me); }

// In one frame, which is kept while the fiber waits. It is left by a jump, and so not instrumented:
// in builds where that matters it calls what is. Nothing is left to be done when it begins: it is
// its worker that enters it.
WEFT_NO_SANITIZE void swapped_entry(void* block) {
    auto& me = static_cast<swapped_fiber&>(*static_cast<fiber_block*>(block));
#if WEFT_ASAN || WEFT_TSAN
    live_on(me);
#else
    live_here(me);
#endif
    end_swapped(me);
}

// --- the end

// The block is not needed by its fiber any more.
void bury(fiber_block& ended) noexcept {
    executor& home = *ended.home;
    if (ended.is_child()) ended.operate(ended.callable(), birth_operation::end);
    if (is_known(ended)) complete(ended);
    release(&ended);
    worker* const here = this_thread_block().runs_for;
    const bool at_home = here != nullptr && &here->home == &home;
    if (at_home && here->number != 0) [[likely]]
        here->count_work(-1);
    else if (at_home && here->is_loop(home))
        --here->work;
    else
        home.add_work(-1);
}

// Most have nothing but their block.
void bury_inside(fiber_worker& worker, fiber_block& ended) noexcept {
    const auto& member = *static_cast<const group_member*>(ended.callable());
    const bool is_unknown =
        (ended.attention.load(std::memory_order_relaxed) & unenlisted_bit) != 0 &&
        ended.references.load(std::memory_order_acquire) == 1 && ended.extras == nullptr;
    if (!member.ends_plainly || !is_unknown || worker.exec.number == 0 ||
        &worker.exec.home != ended.home || !std::is_trivially_destructible_v<own_fiber>)
        [[unlikely]]
        return bury(ended);
    member.group->count_apart(~std::uint64_t{0});
    worker.attachment->blocks.give_back(&ended, ended.allocated);
    worker.exec.count_work(-1);
}

namespace {

void end_unstarted(fiber_worker& worker, fiber_block& block) noexcept {
    forget(block);
    block.operate(block.callable(), birth_operation::destroy);
    feed_hungry(worker, *block.home);  // it has the same fate, or the memory is there again
    bury(block);
}

bool takes_over(const runnable* next, const fiber_block& ended) noexcept {
    const auto unstarted = static_cast<std::uint8_t>(ended.stack());
    if (next == nullptr || next->kind != unstarted) return false;
    const auto& other = *static_cast<const fiber_block*>(next);
    return other.home == ended.home && other.plain_stack() && ended.plain_stack();
}

}  // namespace

void feed_hungry(fiber_worker& worker, executor& home) noexcept {
    hunger& hungry = fiber_list::of(home).hungry;
    if (!hungry.any()) [[likely]]
        return;
    if (worker.attachment != nullptr) worker.attachment->stacks.trim();  // others may run it
    hungry.feed();
}

fiber_block* successor_of(fiber_block& ended) noexcept {
    fiber_worker& worker = *fiber_worker::here();
    runnable* const next = worker.exec.pick();
    if (!takes_over(next, ended)) {
        worker.then = next;
        return nullptr;
    }
    auto& heir = static_cast<fiber_block&>(*next);
    heir.inherit_stack(ended);
#if WEFT_TSAN
    heir.tsan_fiber = ended.tsan_fiber;
#endif
    heir.runnable::kind = ended.runnable::kind;
    bind_if_it_stays(worker, heir);
    worker.current = &heir;
    note_runs(heir);
    bury(ended);
    return &heir;
}

runnable* after_end(fiber_worker& worker, fiber_block& ended) noexcept {
    switch (ended.stack()) {
        case stack_kind::own:
        case stack_kind::ucontext:
            give_back_stack(worker, ended);
            worker.count_stack(-1);
            break;
        case stack_kind::thread:
            static_cast<thread_fiber&>(ended).where.reset();
            break;
        case stack_kind::swapped:
            static_cast<swapped_fiber&>(ended).place.detach();
            break;
    }
    feed_hungry(worker, *ended.home);
    bury(ended);
    return nullptr;
}

// --- on a worker

runnable* fiber_block::run() noexcept {
    thread_block& thread = this_thread_block();
    worker* const w = thread.runs_for;
    if (w != nullptr && &w->home == home) [[likely]] {
        if (bound_to != 0 && bound_to != w->number) [[unlikely]] {  // handed over by somebody
            home->post(this);
            return nullptr;
        }
        if (thread.fibers == nullptr) [[unlikely]] {
            if (!thread.overflow_ready) prepare_thread_for_overflow();
            if (w->attachment == nullptr) w->attachment = std::make_unique<fiber_attachment>(*w);
            w->lender = w->attachment.get();
            thread.fibers = &static_cast<fiber_attachment&>(*w->attachment).side;
        }
        runnable::kind &= static_cast<std::uint8_t>(~guest_bit);
        return run_on(static_cast<fiber_worker&>(*thread.fibers), *this);
    }
    // An executor without workers of its own: this thread is one for the time being.
    if (!thread.overflow_ready) prepare_thread_for_overflow();
    runnable::kind |= guest_bit;
    worker guest(*home);
    guest.timers = w != nullptr ? w->timers : nullptr;
    guest.outer = w;
    guest.lender = &lender_of_guests();
    fiber_worker side(guest, shared_stacks(), nullptr);
    worker_front* const before = std::exchange(thread.fibers, &side);
    thread.runs_for = &guest;
    runnable* const following = run_on(side, *this);
    thread.runs_for = w;
    thread.fibers = before;
    return following;
}

}  // namespace weft::inline v0::detail
