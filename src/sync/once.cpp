// once.cpp - see once.hpp; the protocol is wait_word.hpp's.
//
// When a function throws, all who wait are woken, and one of them takes the next turn.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/once.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0 {

namespace {
constexpr wait_reason waits{"waits for a call_once", false};
}

bool once_flag::begin() {
    detail::refuse_on_shared_stack(this, "once_flag: lies in the stack of a swapped fiber");
    owner_.refuse_again("call_once: called again from inside its function");
    for (;;) {
        const std::uint64_t now = word_.enter();
        word_.leave(now == untried ? running : now);
        if (now == untried) owner_.take();
        if (now != running) return now == untried;
        wait(waits, no_deadline, [word = &word_](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number == running) word->queue().push_back(me);
            word->leave(number);
            return number == running;
        });
    }
}

void once_flag::end(bool succeeded) noexcept {
    owner_.give("call_once: ended by another than who began");
    static_cast<void>(word_.enter());
    detail::woken_list woken;
    word_.queue().claim_all(woken);
    word_.leave(succeeded ? done : untried);
    woken.wake();
}

}  // namespace weft::inline v0
