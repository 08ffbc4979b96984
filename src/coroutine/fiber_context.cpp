// fiber_context.cpp - the switching of fiber_context.
//
// A fiber_context points to a fiber_stop: the saved place of its fiber, and a few words that
// whoever goes there leaves for it. No record of a running fiber is kept anywhere.
//
//      one stack                                a fiber_stop while it is
//      +--------------------------+  high
//      | fiber_body               |             prepared: in here
//      |   deleter, entry         |
//      +--------------------------+
//      | fiber_switch::enter      |
//      | fiber_switch::live       |
//      | the entry function       |
//      |   calls resume()         |             suspended: in this frame
//      | switch_fibers            |
//      +--------------------------+  <- sp
//      |                          |
//      +--------------------------+  low
//
// The stack of a thread has only the lower half of that. A fiber that ends leaves its record's
// address with its successor, which gives the stack back: nobody frees what he stands on.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/fiber_context.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include <weft/base/assert.hpp>
#include <weft/base/thread_block.hpp>
#include <weft/stack/overflow.hpp>

#include "base/report.hpp"
#include "context/annotate.hpp"
#include "context/switch.hpp"
#include "stack/annotate.hpp"

namespace weft::inline v0 {

namespace {

constexpr std::size_t least_stack = 4096;  // below the record; what a portable_context needs

[[noreturn, gnu::cold]] void terminate_saying(const char* line) noexcept {
    detail::report().text("weft: ").text(line).text("\n").write();
    std::terminate();
}

// The slow path of a resume(): `to` was never entered, or ran last on another thread. There a fiber
// that stands in nothing, neither in a fiber_context's stack nor in a coroutine's, is the thread.
[[gnu::noinline]] void take_over(const detail::fiber_stop& to) noexcept {
    WEFT_ASSERT(!to.is_thread, "fiber_context: a thread's own stack resumed by another thread");
    if (!detail::this_thread_block().overflow_ready) detail::prepare_thread_for_overflow();
}

// What a yield() and the report of an overflow find through the thread while a fiber runs.
struct fiber_activity final : detail::activity {
    explicit fiber_activity(std::span<std::byte> memory) noexcept {
        set_role(detail::activity_role::fiber_context);
        set_stack(memory.data(), memory.size());
    }
};

// What has to be done on leaving for `to`, whether the running fiber is suspended or ends.
[[gnu::always_inline]] inline void set_out(detail::thread_block& thread, detail::fiber_stop& to,
                                           detail::fiber_stop* resumer, detail::fiber_record* ended,
                                           detail::injected_call injected) noexcept {
    if (to.owner != &thread) [[unlikely]]
        take_over(to);
    thread.running = to.running;
    to.resumer = resumer;
    to.ended = ended;
    to.injected = injected;
}

}  // namespace

// What reaches into a fiber_context from outside.
struct detail::fiber_switch {
    static fiber_stop* take_out(fiber_context& from) noexcept {
        return std::exchange(from.stop_, nullptr);
    }

    // The first thing on arriving at a stop, on the stack of the fiber that waited there.
    [[gnu::always_inline]] static void arrive(fiber_stop& here) {
        if (here.ended != nullptr || here.injected.call != nullptr) [[unlikely]]
            settle(here);
    }

    [[gnu::noinline]] static void settle(fiber_stop& here) {
        if (here.ended != nullptr) here.ended->release();
        if (here.injected.call == nullptr) return;
        fiber_context result = here.injected.call(here.injected.function, who_came(here));
        here.resumer = take_out(result);
    }

    static fiber_context who_came(const fiber_stop& here) noexcept {
        fiber_context resumer;
        resumer.stop_ = here.resumer;
        return resumer;
    }

    // From the arrival of a new fiber to its end; returns where to go on. An exception ends here.
    static fiber_stop& live(fiber_record& self) noexcept {
        fiber_activity stands_in(self.memory());
        this_thread_block().running = &stands_in;
        arrive(self.stop);
        fiber_context successor = self.run(who_came(self.stop));
        if (successor.empty())
            terminate_saying("fiber_context: an entry function returned an empty one");
        fiber_stop& to = *take_out(successor);
        set_out(this_thread_block(), to, nullptr, &self, {nullptr, nullptr});
        return to;
    }

    // Never left by a return, so it stays off TSan's shadow stack, which lives on with the stack.
    WEFT_NO_SANITIZE static void enter(void* record) {
        jump_from_here(live(*static_cast<fiber_record*>(record)).place);
    }
};

void detail::switch_fibers(void* to_stop, void* here_stop) {
    WEFT_ASSERT(to_stop != nullptr, "fiber_context: resumed an empty one");
    auto& to = *static_cast<fiber_stop*>(to_stop);
    auto& here = *static_cast<fiber_stop*>(here_stop);
    thread_block& thread = this_thread_block();
    here.owner = &thread;
    here.running = thread.running;
    here.is_thread = innermost_activity(thread) == nullptr;
    set_out(thread, to, &here, nullptr, here.injected);
    swap_here(here.place, to.place);
    fiber_switch::arrive(here);
}

bool fiber_context::can_resume() const noexcept {
    return stop_ != nullptr &&
           (stop_->owner == nullptr || stop_->owner == &detail::this_thread_block());
}

namespace detail {

known_stack::known_stack(const stack& memory, stack_origin origin)
    : stack_(memory), origin_(origin) {
    if (origin == stack_origin::user) announce_stack(stack_);
}

known_stack::~known_stack() {
    if (origin_ == stack_origin::depot) return;
    const stack gone = stack_;
    forget_stack(gone);
    make_plain_memory(gone.span());
}

fiber_record::fiber_record(const stack& memory, stack_origin origin) : memory_(memory, origin) {
    const auto below = static_cast<std::size_t>(reinterpret_cast<std::byte*>(this) - memory.low);
    stop.place = context::make(memory.span().first(below), fiber_switch::enter, this,
                               {.tsan_fiber = memory_.get().tsan_fiber});
}

void* place_of_record(std::span<std::byte> memory, std::size_t size, std::size_t alignment) {
    const std::size_t needed = size + std::max<std::size_t>(alignment, 16) + least_stack;
    if (memory.size() < needed)
        throw std::length_error("weft: fiber_context: a stack of " + std::to_string(memory.size()) +
                                " bytes is too small; this one needs " + std::to_string(needed));
    make_plain_memory(memory);
    const auto high = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
    const std::size_t over = (high - size) % std::max<std::size_t>(alignment, 16);
    return memory.data() + (memory.size() - size - over);
}

// A record that is large for a stack does not come out of what the fiber expects to have.
depot_stack::depot_stack(std::size_t record_size)
    : taken_(shared_stacks().take(default_stack_size() + (record_size > 1024 ? record_size : 0))) {}

void terminate_for_losing_a_fiber() noexcept {
    terminate_saying("fiber_context: destroyed or assigned to while it held a fiber");
}

}  // namespace detail

}  // namespace weft::inline v0
