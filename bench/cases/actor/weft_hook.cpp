// weft_hook.cpp - the same as a suspend hook, from outside of the library.
//
// What docs/decisions/0006 compares: each fiber that has entered a context has a hook from then on,
// which lets the context go and takes it again. To set and remove the hook with each call would
// cost a call more than the lock does.
//
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <weft/fiber/fiber_local.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/sync/mutex.hpp>

#include "cases/actor/weft_actors.hpp"

namespace {

class hook_context;

class visitor final : public weft::suspend_hook {
public:
    visitor() { weft::this_fiber::set_suspend_hook(this); }
    ~visitor() override { weft::this_fiber::set_suspend_hook(below()); }
    void suspend() override;

    const hook_context* inside = nullptr;
};

weft::fiber_local<visitor> this_visitor;

// One level, and no plain threads: just what is measured.
class hook_context {
public:
    void lock() const {
        visitor& me = *this_visitor;
        mutex_.lock();
        me.inside = this;
    }
    void unlock() const {
        this_visitor->inside = nullptr;
        mutex_.unlock();
    }

private:
    friend class visitor;
    mutable weft::mutex mutex_;
};

void visitor::suspend() {
    const hook_context* const left = std::exchange(inside, nullptr);
    if (left != nullptr) left->mutex_.unlock();
    suspend_hook::suspend();
    if (left != nullptr) left->mutex_.lock();
    inside = left;
}

}  // namespace

int main(int argc, char** argv) {
    bench::actors::play<hook_context>(bench::read_arguments(argc, argv), "by a hook");
}
