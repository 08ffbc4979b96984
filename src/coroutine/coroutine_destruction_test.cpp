// coroutine_destruction_test.cpp - what happens to a coroutine that is destroyed before its end.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends.hpp"
#include "exception_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

static_assert(!std::is_base_of_v<std::exception, weft::forced_unwind>);
static_assert(!std::is_default_constructible_v<weft::forced_unwind>);

// Writes its letter when it goes.
class leaver {
public:
    leaver(std::string& log, char letter) : log_(log), letter_(letter) {}
    leaver(const leaver&) = delete;
    leaver& operator=(const leaver&) = delete;
    ~leaver() { log_ += letter_; }

private:
    std::string& log_;
    char letter_;
};

[[gnu::noinline]] void yield_below(char letter, std::string& log) {
    const leaver here(log, letter);
    if (letter == 'd') {
        yield();
        log += '!';  // never
    } else {
        yield_below(static_cast<char>(letter + 1), log);
        log += '?';  // never
    }
}

}  // namespace

BACKEND_TEST("destruction: of a suspended one runs its destructors, the innermost frame first") {
    std::string log;
    {
        Coroutine c(options(), [&] {
            const leaver first(log, '1');
            const leaver second(log, '2');
            yield_below('a', log);
        });
        c.resume();
        CHECK(log.empty());
    }
    CHECK(log == "dcba21");
    CHECK(nothing_in_flight());
}

BACKEND_TEST("destruction: the callable goes after the frames of the body") {
    std::string log;
    {
        Coroutine c(options(), [&log, captured = std::make_unique<leaver>(log, 'f')] {
            const leaver here(log, 'b');
            yield();
        });
        c.resume();
    }
    CHECK(log == "bf");
}

BACKEND_TEST("destruction: of one that never started destroys its callable and runs nothing") {
    std::string log;
    {
        const Coroutine c(options(),
                          [&log, captured = std::make_unique<leaver>(log, 'f')] { log += 'r'; });
    }
    CHECK(log == "f");
}

BACKEND_TEST("destruction: of one that has ended destroys its callable only then") {
    std::string log;
    {
        Coroutine c(options(), [&log, captured = std::make_unique<leaver>(log, 'f')] {
            const leaver here(log, 'b');
        });
        c.resume();
        CHECK(log == "b");
    }
    CHECK(log == "bf");
}

BACKEND_TEST("destruction: assigning to a suspended one unwinds it") {
    std::string log;
    Coroutine c(options(), [&] {
        const leaver here(log, 'x');
        yield();
    });
    c.resume();
    c = Coroutine(options(), [&] { log += 'n'; });
    CHECK(log == "x");
    c.resume();
    CHECK(log == "xn");
}

BACKEND_TEST("destruction: forced_unwind passes through handlers that rethrow") {
    std::string log;
    {
        Coroutine c(options(), [&] {
            try {
                try {
                    yield();
                } catch (const std::exception&) {
                    log += 's';  // never: it is none
                } catch (...) {
                    log += 'a';
                    throw;
                }
            } catch (const weft::forced_unwind&) {
                log += 'f';
                throw;
            }
        });
        c.resume();
    }
    CHECK(log == "af");
}

BACKEND_TEST(
    "destruction: the unwound one sees one exception in flight, the destroyer none of it") {
    int inside = 0;
    int outside = -1;
    {
        Coroutine c(options(), [&] {
            const at_exit look{[&] { inside = std::uncaught_exceptions(); }};
            yield();
        });
        c.resume();
        const at_exit look{[&] { outside = std::uncaught_exceptions(); }};
    }
    CHECK(inside == 1);
    CHECK(outside == 0);
    CHECK(nothing_in_flight());
}

BACKEND_TEST("destruction: a destructor that runs in unwinding may throw and catch") {
    int caught = 0;
    {
        Coroutine c(options(), [&] {
            const at_exit thrower{[&] {
                try {
                    throw problem{4};
                } catch (const problem& p) { caught = p.number; }
            }};
            yield();
        });
        c.resume();
    }
    CHECK(caught == 4);
}

BACKEND_TEST("destruction: works inside a catch block of the body, and of the destroyer") {
    std::string log;
    try {
        Coroutine c(options(), [&] {
            const leaver here(log, 'o');
            try {
                throw problem{1};
            } catch (const problem&) {
                const leaver handler(log, 'h');
                yield();
            }
        });
        c.resume();
        throw problem{2};  // destroys c
    } catch (const problem& p) {
        CHECK(log == "ho");
        CHECK(p.number == 2);
        Coroutine c(options(), [&] {
            const leaver here(log, 'p');
            yield();
        });
        c.resume();
        c = Coroutine();
        CHECK(log == "hop");
        CHECK(current_problem() == 2);
    }
    CHECK(nothing_in_flight());
}

BACKEND_TEST("destruction: of one that yielded in a destructor goes on through that destructor") {
    std::string log;
    {
        Coroutine c(options(), [&] {
            const leaver here(log, 'o');
            try {
                // A destructor that is left by forced_unwind must say so.
                struct yielding {
                    ~yielding() noexcept(false) {
                        try {
                            yield();
                        } catch (const weft::forced_unwind&) {
                            log_ += 'y';
                            throw;
                        }
                    }
                    std::string& log_;
                };
                const yielding y{log};
            } catch (const problem&) { log += '?'; }
        });
        c.resume();
    }
    CHECK(log == "yo");
}

BACKEND_TEST("destruction: an unwinding body may still run other coroutines to their end") {
    std::string log;
    Coroutine helper(options(), [&] {
        log += '1';
        yield();
        log += '2';
    });
    {
        Coroutine c(options(), [&] {
            const at_exit run_helper{[&] {
                while (!helper.done()) helper.resume();
            }};
            yield();
        });
        c.resume();
    }
    CHECK(log == "12");
}

BACKEND_TEST("destruction: of one that owns others unwinds them all") {
    std::string log;
    {
        Coroutine outer(options(), [&log, &options] {
            const leaver here(log, 'o');
            Coroutine inner(options(), [&log, &options] {
                const leaver in_here(log, 'i');
                Coroutine innermost(options(), [&log] {
                    const leaver in_there(log, 'n');
                    yield();
                });
                innermost.resume();
                yield();
            });
            inner.resume();
            yield();
        });
        outer.resume();
    }
    CHECK(log == "nio");
}

BACKEND_TEST("destruction: by another coroutine, and in another thread") {
    std::string log;
    const auto body = [&log](char letter) {
        return [&log, letter] {
            const leaver here(log, letter);
            yield();
        };
    };
    Coroutine first(options(), body('1'));
    Coroutine second(options(), body('2'));
    first.resume();
    second.resume();
    Coroutine destroyer(options(), [&] { first = Coroutine(); });
    destroyer.resume();
    CHECK(log == "1");
    std::thread([&] { second = Coroutine(); }).join();
    CHECK(log == "12");
}

BACKEND_TEST("destruction: of many, in an order unlike that of their creation") {
    std::string log;
    std::vector<Coroutine> all;
    for (char letter = 'a'; letter < 'k'; ++letter) {
        all.emplace_back(options(), [&log, letter] {
            const leaver here(log, letter);
            for (;;) yield();
        });
    }
    for (Coroutine& c : all) c.resume();
    for (const std::size_t i : {3U, 0U, 9U, 5U, 1U}) all[i] = Coroutine();
    CHECK(log == "dajfb");
    for (Coroutine& c : all) {
        if (c) c.resume();
    }
    for (const std::size_t i : {8U, 2U, 7U, 4U, 6U}) all[i] = Coroutine();
    CHECK(log == "dajfbicheg");
}

BACKEND_TEST("destruction: a throwing move of the callable leaves nothing behind") {
    struct throws_when_moved {
        explicit throws_when_moved(int& count) : count_(count) { ++count_; }
        throws_when_moved(throws_when_moved&& other) : count_(other.count_) {
            if (++count_ == 2) {
                --count_;
                throw problem{6};
            }
        }
        ~throws_when_moved() { --count_; }
        void operator()() const {}
        int& count_;
    };
    int alive = 0;
    int caught = 0;
    try {
        Coroutine c(options(), throws_when_moved(alive));
    } catch (const problem& p) { caught = p.number; }
    CHECK(caught == 6);
    CHECK(alive == 0);
    Coroutine next(options(), [&] { caught = 7; });
    next.resume();
    CHECK(caught == 7);
    if constexpr (is_thread<Coroutine>) { CHECK(options.threads.started() == 1); }
}
