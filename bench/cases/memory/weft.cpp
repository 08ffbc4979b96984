// weft.cpp - parked fibers of weft.
//
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>

#include "cases/memory/workload.hpp"

namespace {

constexpr weft::wait_reason waits{"is parked", false};

class weft_player {
public:
    // The list of who waits is there, and touched, before anything is measured.
    weft_player(std::uint64_t count, weft::stack_kind kind)
        : kind_(kind),
          loop_(std::make_unique<weft::loop>(weft::loop_options{.external_wakes = false})),
          waiting_(count) {}

    void park() {
        for (std::uint64_t i = 0; i < waiting_.size(); ++i)
            weft::go(*loop_, {.kind = kind_}, [this, i] {
                std::uint64_t local = i;
                bench::keep(local);
                weft::wait(waits, weft::no_deadline, [this, i](weft::waiter& me) noexcept {
                    waiting_[i] = &me;
                    return true;
                });
                bench::keep(local);
                if (local == i) ++ended_;
            });
        loop_->poll();
    }

    std::uint64_t wake() {
        for (weft::waiter* const each : waiting_)
            if (each->claim()) each->wake();
        loop_->run();
        return ended_;
    }

private:
    weft::stack_kind kind_;
    std::unique_ptr<weft::loop> loop_;
    std::vector<weft::waiter*> waiting_;
    std::uint64_t ended_ = 0;
};

auto of(weft::stack_kind kind) {
    return [kind](std::uint64_t count) { return weft_player(count, kind); };
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    using enum weft::stack_kind;
    bench::parked::measure(how, "weft, own stacks", 5'000, of(own));
    bench::parked::measure(how, "weft, swapped", 1'500, of(swapped));
    bench::parked::measure(how, "weft, ucontext", 6'500, of(ucontext));
}
