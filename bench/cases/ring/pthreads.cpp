// pthreads.cpp - the ring on a thread each, with a semaphore as the gate.
//
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <semaphore.h>

#include <mutex>
#include <system_error>

#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;

class threads_part final : public part {
public:
    explicit threads_part(const shape& s) : ring_(s), seats_(s.fibers()) {
        bench::require(s.frame == 0, "no larger frames here");
    }

    void prepare() override {
        pthread_attr_t small;
        ::pthread_attr_init(&small);
        ::pthread_attr_setstacksize(&small, 64 * 1024);
        for (std::uint64_t i = 0; i < seats_.size(); ++i) {
            seats_[i].whole = this;
            seats_[i].place = i % ring_.length;
            seats_[i].next = &seats_[i - i % ring_.length + (i + 1) % ring_.length];
            ::sem_init(&seats_[i].gate, 0, 0);
        }
        for (seat& s : seats_)
            if (const int error = ::pthread_create(&s.thread, &small, &entry, &s); error != 0)
                throw std::system_error(error, std::generic_category(), "pthread_create");
        ::pthread_attr_destroy(&small);
    }

    void run() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            ::sem_post(&seats_[cycle * ring_.length].gate);
        for (seat& s : seats_) ::pthread_join(s.thread, nullptr);
    }

    [[nodiscard]] tally result() const override { return sum_; }

private:
    struct seat {
        threads_part* whole = nullptr;
        seat* next = nullptr;
        std::uint64_t place = 0;
        sem_t gate;
        pthread_t thread;
    };

    static bool pass(seat& me) {
        if (::sem_trywait(&me.gate) == 0) return false;
        while (::sem_wait(&me.gate) != 0) {}
        return true;
    }

    static void* entry(void* argument) {
        seat& me = *static_cast<seat*>(argument);
        const shape& ring = me.whole->ring_;
        if (me.place == 0) pass(me);
        const std::uint64_t last = ring.strict ? 0 : ring.length - 1;
        std::uint64_t suspended = 0;
        std::uint64_t turn = 0;
        for (std::uint64_t round = 0; round < ring.rounds; ++round) {
            if (turn == me.place) {
                ::sem_post(&me.next->gate);
                if (pass(me)) ++suspended;
            } else {
                if (pass(me)) ++suspended;
                ::sem_post(&me.next->gate);
            }
            turn = turn == last ? 0 : turn + 1;
        }
        const std::lock_guard lock(me.whole->mutex_);
        me.whole->sum_.add(ring.rounds, suspended);
        return nullptr;
    }

    const shape ring_;
    std::vector<seat> seats_;
    std::mutex mutex_;
    tally sum_;
};

std::unique_ptr<part> make(const shape& s) { return std::make_unique<threads_part>(s); }

constexpr row rows[] = {
    {.key = "pthreads",
     .title = "a pthread each",
     .make = make,
     .messages = 400'000,
     .most_fibers = 20'000,
     .why = "not tried: Linux allows some 32,000 threads by default",
     .bytes = 20'000,
     .sparse = true,
     .exact = false},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
