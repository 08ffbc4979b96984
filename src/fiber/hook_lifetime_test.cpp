// hook_lifetime_test.cpp - suspend hooks that are destroyed or copied while they are set.
//
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <weft/fiber/fiber_local.hpp>
#include <weft/fiber/suspend_hook.hpp>

#include "logging_hook.hpp"
#include "loops.hpp"

using namespace weft;
using this_fiber::get_suspend_hook;
using this_fiber::set_suspend_hook;
using weft_test::logging_hook;

MATRIX_TEST(
    "hooks: one that lives in the captures of its fiber, or in its fiber_local, goes there") {
    std::string log;
    logging_hook outside(log, 'e');
    fiber_local<std::unique_ptr<logging_hook>> kept;
    spawn([&, captured = logging_hook(log, 'c')]() mutable {
        set_suspend_hook(&outside);
        *kept = std::make_unique<logging_hook>(log, 'd');
        set_suspend_hook(kept->get());
        set_suspend_hook(&captured);
        yield();
        log += ' ';
    });
    run();
    CHECK(log == "<<<cde345EDC >");  // no finish() but that of the one outside
    CHECK(outside.below() == nullptr);
}

MATRIX_TEST("hooks: one that is gone before its fiber ends is called no more, those about it are") {
    std::string log;
    logging_hook below(log, 'b');
    logging_hook above(log, 'a');
    spawn([&] {
        set_suspend_hook(&below);
        auto between = std::make_unique<logging_hook>(log, 'c');
        set_suspend_hook(between.get());
        set_suspend_hook(&above);
        between.reset();
        yield();
        CHECK(above.below() == &below);
        log += ' ';
        auto top = std::make_unique<logging_hook>(log, 'd');
        set_suspend_hook(top.get());
        top.reset();
        yield();
        CHECK(get_suspend_hook() == &above);
    });
    run();
    CHECK(log == "<<<ab12BA <ab12BA>>");
}

MATRIX_TEST("hooks: a copy of one that is set is set nowhere") {
    std::string log;
    logging_hook a(log, 'a');
    spawn([&] {
        set_suspend_hook(&a);
        const logging_hook copy(a);
        yield();
    });
    run();
    CHECK(log == "<a1A>");
}

MATRIX_TEST("fiber_local: one that is made when a hook is finished is destroyed, too") {
    struct counted {
        counted() { ++alive(); }
        ~counted() { --alive(); }
        static int& alive() {
            static int count = 0;
            return count;
        }
    };
    class looks final : public suspend_hook {
    public:
        void finish() noexcept override { seen = (static_cast<void>(*local), counted::alive()); }
        fiber_local<counted> local;
        int seen = 0;
    } hook;
    spawn([&] { set_suspend_hook(&hook); });
    run();
    CHECK(hook.seen == 1);
    CHECK(counted::alive() == 0);
}

MATRIX_TEST("hooks: one that a destructor sets at the end of the fiber is finished, too") {
    std::string log;
    logging_hook a(log, 'a');
    struct sets_it {
        ~sets_it() {
            if (hook != nullptr) set_suspend_hook(hook);
        }
        suspend_hook* hook = nullptr;
    };
    fiber_local<sets_it> local;
    spawn([&] { local->hook = &a; });
    run();
    CHECK(log == "<>");
}

WEFT_TEST("hooks misuse: one that is destroyed while another's fiber has it set aborts by name") {
    auto hook = std::make_unique<suspend_hook>();
    loop s({.external_wakes = false});
    go(s, {.name = "its fiber"}, [&] {
        set_suspend_hook(hook.get());
        static_cast<void>(park());
        set_suspend_hook(nullptr);
    });
    s.run_until_blocked();
    EXPECT_DEATH(hook.reset(), "suspend_hook: destroyed while it is set.*its fiber");
    EXPECT_DEATH(
        {
            go(s, [&] { hook.reset(); });
            s.run();
        },
        "suspend_hook: destroyed while it is set.*its fiber");
}

WEFT_TEST("hooks misuse: one that is set on two fibers aborts") {
    const auto set_twice = [] {
        suspend_hook hook;
        loop s({.external_wakes = false});
        for (int i = 0; i < 2; ++i)
            go(s, [&] {
                set_suspend_hook(&hook);
                yield();
            });
        s.run();
    };
    EXPECT_DEATH(set_twice(), "it is in another chain");
}
