// coroutine_block.cpp - resume and yield, and what happens at the ends of a coroutine's life.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine_block.hpp>

#include <algorithm>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/overflow.hpp>

#include "coroutine/context_backend.hpp"
#include "coroutine/swapped_backend.hpp"

namespace weft::inline v0 {

namespace detail {

namespace {

constexpr std::size_t longest_name = 31;

}  // namespace

coroutine_base::coroutine_base(activity_role role, std::string_view given_name) {
    set_role(role);
    if (given_name.empty() || given_name.front() == '\0') return;
    const std::size_t length = std::min(given_name.size(), longest_name);
    char* const copy = new char[length + 1];
    copy[given_name.copy(copy, length)] = '\0';
    name = copy;
}

coroutine_base::~coroutine_base() {
    if (*name != '\0') delete[] name;
}

[[gnu::cold]] void coroutine_base::refuse_resume(state found) const noexcept {
    fail(found == state::done ? "coroutine: resumed after its end"
                              : "coroutine: resumed while it is running",
         name);
}

}  // namespace detail

template <coroutine_backend Backend>
basic_coroutine_block<Backend>::basic_coroutine_block(const coroutine_options& options)
    : resumed(detail::role_of<Backend>, options.name), Backend(options, &entry, this) {
    measured = options.measure_stack;
    const stack on = this->where();
    this->set_stack(on.low, on.size);
}

template <coroutine_backend Backend>
basic_coroutine_block<Backend>::~basic_coroutine_block() = default;

template <coroutine_backend Backend>
void basic_coroutine_block<Backend>::destroy(basic_coroutine_block* block) noexcept {
    if (block == nullptr) return;
    const state before = block->now.load(std::memory_order_relaxed);
    if (before == state::running)
        detail::fail("coroutine: destroyed while it is running", block->name);
    if (before == state::suspended) {
        block->unwinding = true;
        try {
            detail::call_switching(&switch_in, block->base());
        } catch (...) {
            detail::fail("coroutine: no memory to make room for one that is destroyed",
                         block->name);
        }
    }
    delete block;
}

// The thread is asked for again after the switch: a fiber may have waited inside the body, and the
// resumer then goes on in another thread. That the body yielded is noted here, and not by the body,
// unless it can be resumed without this function: on the thread back end the state then stays in
// this processor's cache.
template <coroutine_backend Backend>
void basic_coroutine_block<Backend>::switch_in(void* base, void*) {
    auto& self = static_cast<basic_coroutine_block&>(*static_cast<detail::coroutine_base*>(base));
    detail::thread_block& thread = detail::this_thread_block();
    if (!thread.overflow_ready) [[unlikely]]
        detail::prepare_thread_for_overflow();
    self.outer = thread.running;
    thread.running = &self;
    self.now.store(state::running, std::memory_order_relaxed);
    try {
        self.enter();
    } catch (...) {  // it was not entered (no memory to make room on a shared stack)
        detail::this_thread_block().running = self.outer;
        self.now.store(self.started ? state::suspended : state::fresh, std::memory_order_relaxed);
        throw;
    }
    detail::this_thread_block().running = self.outer;
    if (self.done()) [[unlikely]]
        self.end();
    else
        self.now.store(state::suspended, std::memory_order_relaxed);
}

template <coroutine_backend Backend>
void basic_coroutine_block<Backend>::switch_out(void* base, void*) {
    auto& self = static_cast<basic_coroutine_block&>(*static_cast<detail::coroutine_base*>(base));
    if (self.unwinding) [[unlikely]]
        detail::fail(
            "coroutine: yielded while it is being destroyed (forced_unwind was swallowed, or a "
            "destructor yields)",
            self.name);
    if constexpr (switches_in_frame) self.note_parked();
    self.leave();
    if (self.unwinding) [[unlikely]]
        unwind();
}

template <coroutine_backend Backend>
[[gnu::noinline, gnu::cold]] void basic_coroutine_block<Backend>::unwind() {
    throw forced_unwind();
}

// By the body, for a resumer who only goes on.
template <coroutine_backend Backend>
[[gnu::always_inline]] inline void basic_coroutine_block<Backend>::note_parked() noexcept {
    detail::this_thread_block().running = outer;
    now.store(state::suspended, std::memory_order_relaxed);
}

// --- in the frame of who resumes or yields

template <coroutine_backend Backend>
context* basic_coroutine_block<Backend>::step_in() noexcept {
    if constexpr (switches_in_frame) {
        detail::thread_block& thread = detail::this_thread_block();
        if (now.load(std::memory_order_relaxed) != state::suspended || thread.exceptions->any() ||
            !thread.overflow_ready) [[unlikely]]
            return nullptr;
        outer = thread.running;
        thread.running = this;
        now.store(state::running, std::memory_order_relaxed);
        return &this->body();
    }
    return nullptr;
}

template <coroutine_backend Backend>
[[gnu::noinline, gnu::cold]] void basic_coroutine_block<Backend>::step_back() {
    detail::this_thread_block().running = outer;
    end();
    if (error != nullptr) std::rethrow_exception(std::exchange(error, nullptr));
}

template <coroutine_backend Backend>
[[gnu::always_inline]] inline bool basic_coroutine_block<Backend>::part() noexcept {
    if (unwinding || detail::exceptions_of_this_thread()->any()) [[unlikely]]
        return false;
    note_parked();
    return true;
}

template <coroutine_backend Backend>
context* basic_coroutine_block<Backend>::step_out() noexcept {
    if constexpr (switches_in_frame) return part() ? &this->resumer() : nullptr;
    return nullptr;
}

template <coroutine_backend Backend>
auto basic_coroutine_block<Backend>::step_out_here() noexcept -> way_out {
    if constexpr (switches_in_frame) {
        detail::activity* const running = detail::running_on_this_thread();
        if (running == nullptr || running->role() != detail::role_of<Backend>) [[unlikely]]
            return {};
        auto& self =
            static_cast<basic_coroutine_block&>(static_cast<detail::coroutine_base&>(*running));
        if (self.part()) [[likely]]
            return {&self.body(), &self.resumer()};
    }
    return {};
}

// Not instrumented: it may be left by a jump, and its entry would stay on the shadow stack of a
// TSan fiber that lives on with the stack. What it calls returns.
template <coroutine_backend Backend>
void basic_coroutine_block<Backend>::entry(void* block) {
    auto& self = *static_cast<basic_coroutine_block*>(block);
    self.live();
    self.finish();
}

// From the first resume to the end.
template <coroutine_backend Backend>
[[gnu::noinline]] void basic_coroutine_block<Backend>::live() noexcept {
    started = true;
    run_and_keep_exception();
    now.store(state::done, std::memory_order_relaxed);
}

template <coroutine_backend Backend>
void basic_coroutine_block<Backend>::run_and_keep_exception() noexcept {
    try {
        run();
    } catch (const forced_unwind&) { return; } catch (...) {
        if (!unwinding) {
            error = std::current_exception();
            return;
        }
    }
    if (unwinding) detail::fail("coroutine: its body swallowed forced_unwind", name);
}

// One that has ended has no stack any more, and how much it used of it takes the place of its size.
template <coroutine_backend Backend>
[[gnu::noinline]] void basic_coroutine_block<Backend>::end() noexcept {
    if (measured) this->set_stack_size(high_water_mark({this->stack_low, this->stack_size()}));
    this->reclaim();
}

template <coroutine_backend Backend>
std::size_t basic_coroutine_block<Backend>::stack_high_water() const noexcept {
    if (!measured || !started) return 0;
    return done() ? this->stack_size() : high_water_mark({this->stack_low, this->stack_size()});
}

template <coroutine_backend Backend>
detail::surroundings basic_coroutine_block<Backend>::outside_of(
    const detail::coroutine_base& base) noexcept {
    const auto& self = static_cast<const basic_coroutine_block&>(base);
    return {self.outer, self.kept_by_resumer()};
}

template class basic_coroutine_block<own_backend>;
template class basic_coroutine_block<ucontext_backend>;
template class basic_coroutine_block<thread_backend>;
template class basic_coroutine_block<swapped_backend>;

namespace detail {

// By a type's name, for blocks tell these to nobody else.
struct coroutine_kind {
    template <class Backend>
    static constexpr switching_function yield = &basic_coroutine_block<Backend>::switch_out;
    template <class Backend>
    static constexpr auto outside = &basic_coroutine_block<Backend>::outside_of;
};

namespace {

// What is asked of a coroutine by who knows only that it runs; its role is the index.
using kind = coroutine_kind;
constexpr switching_function yield_by_role[] = {nullptr,
                                                nullptr,
                                                kind::yield<own_backend>,
                                                kind::yield<ucontext_backend>,
                                                kind::yield<thread_backend>,
                                                kind::yield<swapped_backend>};
constexpr surroundings (*outside_by_role[])(const coroutine_base&) noexcept = {
    nullptr,
    nullptr,
    kind::outside<own_backend>,
    kind::outside<ucontext_backend>,
    kind::outside<thread_backend>,
    kind::outside<swapped_backend>};

[[noreturn, gnu::cold, gnu::noinline]] void refuse_yield(const activity* running) noexcept {
    fail(running != nullptr && running->role() == activity_role::fiber_context
             ? "this_coroutine::yield: called in a fiber_context, outside any coroutine"
             : "this_coroutine::yield: called outside any coroutine");
}

}  // namespace

surroundings surroundings_of(const activity& coroutine) noexcept {
    const auto outside = outside_by_role[static_cast<std::size_t>(coroutine.role())];
    return outside(static_cast<const coroutine_base&>(coroutine));
}

void yield_by_call() {
    activity* const running = this_thread_block().running;
    if (running == nullptr || !running->is_coroutine()) [[unlikely]]
        refuse_yield(running);
    call_switching(yield_by_role[static_cast<std::size_t>(running->role())],
                   static_cast<coroutine_base*>(running));
}

}  // namespace detail

}  // namespace weft::inline v0
