// weft_ring.hpp - the ring on fibers of weft, one loop a thread.
//
// A gate is what a primitive looks like: a count, and who waits. The loops take no wakes from other
// threads, so plain ints will do. A wait here ignores cancellation and has no deadline.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <alloca.h>

#include <cstring>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>

#include "cases/ring/workload.hpp"

namespace bench::ring {

inline constexpr weft::wait_reason waits{"waits for a message", false};

class gate {
public:
    /// Says whether it had to wait.
    [[gnu::always_inline]] bool pass() {
        if (messages_ > 0) {
            --messages_;
            return false;
        }
        weft::wait(waits, weft::no_deadline, [this](weft::waiter& me) noexcept {
            waiting_ = &me;
            return true;
        });
        return true;
    }

    [[gnu::always_inline]] void wake() {
        if (weft::waiter* const woken = std::exchange(waiting_, nullptr)) {
            if (woken->claim()) woken->wake();
        } else {
            ++messages_;
        }
    }

private:
    weft::waiter* waiting_ = nullptr;
    std::uint64_t messages_ = 0;
};

struct member {
    gate* mine;
    gate* next;
    std::uint32_t place;
};

// The loop that all rows share. Not inlined: with a larger frame it is called from above that.
[[gnu::noinline]] inline void go_round(const member& me, const shape& ring, tally& sum) {
    gate& mine = *me.mine;
    gate& next = *me.next;
    const std::uint64_t rounds = ring.rounds;
    const std::uint64_t last = ring.strict ? 0 : ring.length - 1;
    std::uint64_t suspended = 0;
    std::uint64_t turn = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        if (turn == me.place) {
            next.wake();
            if (mine.pass()) ++suspended;
        } else {
            if (mine.pass()) ++suspended;
            next.wake();
        }
        turn = turn == last ? 0 : turn + 1;
    }
    sum.add(rounds, suspended);
}

[[gnu::noinline]] inline void go_round_in_frame(const member& me, const shape& ring, tally& sum) {
    auto* const bytes = static_cast<unsigned char*>(::alloca(ring.frame));
    const auto mark = static_cast<unsigned char>(me.place + 1);
    std::memset(bytes, mark, ring.frame);
    keep(*bytes);
    go_round(me, ring, sum);
    keep(*bytes);
    require(bytes[0] == mark && bytes[ring.frame - 1] == mark, "the frame survives");
}

class weft_part final : public part {
public:
    weft_part(const shape& s, bool slot, weft::stack_kind kind)
        : ring_(s),
          kind_(kind),
          loop_({.external_wakes = false, .wake_slot = slot}),
          gates_(s.fibers()) {}

    void prepare() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            // The one that begins comes last, so that the others wait when it does.
            for (std::uint64_t place = ring_.length; place-- > 0;) start(cycle, place);
        loop_.poll();
    }

    void run() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            gates_[cycle * ring_.length].wake();
        loop_.poll();
    }

    void end() override {
        for (gate& each : gates_) each.wake();
        require(!loop_.run(), "nobody is left waiting");
    }

    [[nodiscard]] tally result() const override { return sum_; }

private:
    void start(std::uint64_t cycle, std::uint64_t place) {
        gate* const first = &gates_[cycle * ring_.length];
        const member me{first + place, first + (place + 1) % ring_.length,
                        static_cast<std::uint32_t>(place)};
        weft::go(loop_, {.kind = kind_}, [this, me] {
            if (me.place == 0) me.mine->pass();
            if (ring_.frame != 0)
                go_round_in_frame(me, ring_, sum_);
            else
                go_round(me, ring_, sum_);
            me.mine->pass();
        });
    }

    const shape ring_;
    const weft::stack_kind kind_;
    weft::loop loop_;
    std::vector<gate> gates_;
    tally sum_;
};

template <bool Slot, weft::stack_kind Kind>
std::unique_ptr<part> make(const shape& s) {
    return std::make_unique<weft_part>(s, Slot, Kind);
}

}  // namespace bench::ring
