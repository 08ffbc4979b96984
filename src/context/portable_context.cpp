// portable_context.cpp - make, swap and jump over ucontext.
//
// The ucontext_t of a suspended context (nearly a kilobyte) lies on the stack that it describes:
// for a new one at the top, for a suspended one in the frame of swap(). So a context stays small
// and movable. Beside it lie two addresses, written by whoever goes there: what the native switch
// has in registers.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/portable_context.hpp>

#include <ucontext.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <weft/base/assert.hpp>

#include "context/annotate.hpp"
#include "context/carry.hpp"

namespace weft::inline v0 {

struct detail::portable_place {
    ucontext_t context;
    portable_context* mine;  // written by whoever goes there
    portable_context* left;  //
};

namespace {

struct first_frame {
    detail::portable_place place;
    context_entry entry;
    void* argument;
};

// A first frame here, and a frame of swap(). On x86-64 a ucontext takes 1 KiB, on aarch64 4.5 KiB.
constexpr std::size_t smallest_stack = 2 * sizeof(ucontext_t) + 2048;

// More than what makecontext writes below the first frame.
constexpr std::ptrdiff_t first_words = 256;

// makecontext passes ints; a pointer travels as two of them.
//
// The instruction before it belongs to nobody: while swapcontext goes here for the first time, a
// walk of the stack takes our address for one that is returned to, and looks at the byte before it.
// In whatever function the compiler has put there it would go astray; so it ends.
[[gnu::patchable_function_entry(1, 1)]] WEFT_NO_SANITIZE void start(unsigned low, unsigned high) {
    const auto address = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
    const auto* frame = reinterpret_cast<const first_frame*>(address);
    detail::arrived(nullptr);
    frame->entry(frame->argument);
    detail::fail("context: its entry returned");  // ucontext would end the process, with status 0
}

// ASan puts a swapcontext of its own before the real one; more than its frame.
constexpr std::ptrdiff_t between_swaps = WEFT_ASAN ? 512 : 0;

// Somewhere below the frame of the function that calls it, and of what that calls to swap.
[[gnu::noinline]] std::byte* below_the_caller() noexcept {
    void* here = __builtin_frame_address(0);
    asm volatile("" : "+r"(here));
    return static_cast<std::byte*>(here) - between_swaps;
}

// swapcontext loads the stack pointer of the other side some instructions before it pushes the
// return address. A signal's handler that walks the stack in between takes what lies lowest in our
// frame for that address; so a zero lies there, which ends the walk. (glibc on x86-64; harmless
// elsewhere.)
[[gnu::always_inline]] inline void end_walks_at(void* lowest_in_frame) noexcept {
    *static_cast<void* volatile*>(lowest_in_frame) = nullptr;
}

// swapcontext keeps the control words of both sides. If a native context that keeps its own calls
// swap(), what its thread has put by for it waits in that call.
struct native_fp_keeper {
    bool runs;
    std::uint64_t thread_fp_control;
};

native_fp_keeper leave_native_fp_keeper() noexcept {
    detail::thread_block& thread = detail::this_thread_block();
    return {std::exchange(thread.runs_fp_keeper, false), thread.fp_control};
}

void return_to_native_fp_keeper(native_fp_keeper keeper) noexcept {
    detail::thread_block& thread = detail::this_thread_block();
    thread.runs_fp_keeper = keeper.runs;
    thread.fp_control = keeper.thread_fp_control;
    if (keeper.runs) thread.exceptions = &detail::unknown_exceptions;  // see carry.hpp
}

}  // namespace

portable_context portable_context::make(std::span<std::byte> stack, context_entry entry,
                                        void* argument, [[maybe_unused]] context_options options) {
    WEFT_ASSERT(stack.size() >= smallest_stack,
                "context: a ucontext made on a stack without room for two of them and 2 KiB");
    portable_context made;
#if WEFT_ASAN || WEFT_TSAN
    made.record_ = detail::switch_record(stack, options.tsan_fiber);
#endif
    const auto high = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
    auto* const place = reinterpret_cast<std::byte*>((high - sizeof(first_frame)) / 64 * 64);
    detail::make_plain_memory({place - first_words, place + sizeof(first_frame)});
    auto* frame = ::new (place) first_frame;
    frame->entry = entry;
    frame->argument = argument;
    if (::getcontext(&frame->place.context) != 0)
        throw std::system_error(errno, std::generic_category(), "weft: getcontext");
    frame->place.context.uc_stack.ss_sp = stack.data();
    frame->place.context.uc_stack.ss_size =
        static_cast<std::size_t>(reinterpret_cast<std::byte*>(frame) - stack.data());
    frame->place.context.uc_link = nullptr;
    const auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(frame)};
    ::makecontext(&frame->place.context, reinterpret_cast<void (*)()>(&start), 2,
                  static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
    made.saved_ = &frame->place;
    made.lowest_used_ = reinterpret_cast<std::byte*>(frame) - first_words;
    return made;
}

[[gnu::noinline]] detail::arrival<portable_context> portable_context::swap_function(
    portable_context& from, portable_context& to) noexcept {
    detail::portable_place here;
    here.context.uc_stack = {};  // swapcontext does not set it, and ASan's interceptor reads it
    from.saved_ = &here;
    to.saved_->mine = &to;
    to.saved_->left = &from;
    const native_fp_keeper keeper = leave_native_fp_keeper();
    const bool puts_away = detail::must_put_away();
    detail::context_state state;
    if (puts_away) detail::put_away(state);
    std::size_t lowest_words = 16;
    asm volatile("" : "+r"(lowest_words));  // of a known size, it might lie anywhere in the frame
    end_walks_at(__builtin_alloca(lowest_words));
    from.lowest_used_ = below_the_caller();
    void* fake_stack = nullptr;
    detail::leaving(from.record_, to.record_, fake_stack);
    const int failed = ::swapcontext(&here.context, &to.saved_->context);
    detail::arrived(fake_stack);
    if (puts_away) detail::take_up(state);
    return_to_native_fp_keeper(keeper);
    WEFT_ASSERT(failed == 0, "context: swapcontext failed");
    return {*here.mine, here.left};
}

// Not instrumented, for it does not return: see coroutine_block.cpp.
WEFT_NO_SANITIZE void portable_context::jump(portable_context& to) noexcept {
    static_cast<void>(leave_native_fp_keeper());
    detail::put_away_finished();
    detail::leaving_for_good(to.record_);
    to.saved_->mine = &to;
    to.saved_->left = nullptr;
    ::setcontext(&to.saved_->context);
    detail::fail("context: setcontext failed");
}

std::byte* portable_context::lowest_used() const noexcept { return lowest_used_; }

}  // namespace weft::inline v0
