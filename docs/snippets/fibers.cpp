// fibers.cpp - the snippets of docs/fibers.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <stop_token>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;

namespace {

void starting() {
    int ran = 0;
    // [starting]
    loop s;
    go(s, [&] { ++ran; });  // fire and forget
    go(s, {.name = "reader", .stack_size = 256 * 1024}, [&] { ++ran; });
    fiber f(s, [&](std::stop_token stop) {  // a handle, as std::jthread is that of a thread
        while (!stop.stop_requested()) {
            ++ran;
            yield();
        }
    });
    f.request_stop();
    s.run();
    f.join();
    // [/starting]
    check(ran == 2, "two ran");
}

void suspending() {
    loop s;
    std::vector<runnable*> list;
    bool done = false;
    go(s, [&] {
        // [suspending]
        suspend([&](runnable* r) noexcept -> runnable* {
            list.push_back(r);  // somebody posts it later
            return nullptr;
        });
        // [/suspending]
        done = true;
    });
    s.run_until_blocked();
    check(!done && list.size() == 1, "suspended");
    s.post(list.front());
    s.run();
    check(done, "resumed");
}

int state = 0;

// [hook]
class saves_state : public suspend_hook {
    void suspend() override {
        const int saved = state;  // on the fiber's stack, while others run
        suspend_hook::suspend();
        state = saved;
    }
};
// [/hook]

void hooked() {
    loop s;
    for (int i = 0; i < 2; ++i)
        go(s, [i] {
            saves_state hook;
            this_fiber::set_suspend_hook(&hook);
            state = i;
            yield();
            check(state == i, "state");
            this_fiber::set_suspend_hook(nullptr);
        });
    s.run();
}

void guarded() {
    loop s;
    go(s, [] {
        // [no_suspend]
        const no_suspend guard("the free list is inconsistent here");
        // [/no_suspend]
    });
    s.run();
}

}  // namespace

int main() {
    starting();
    suspending();
    hooked();
    guarded();
    return 0;
}
