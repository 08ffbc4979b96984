// boost_context.cpp - the ring on Boost.Context with the least scheduler: an intrusive queue.
//
// One that waits takes the next from the queue and jumps to it; that one notes where the other
// stopped. Stacks are slots of 8 KiB of one mapping, without guards, so that as little as possible
// is touched.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <boost/version.hpp>

#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;
namespace context = boost::context::detail;

constexpr std::size_t slot_size = 8 * 1024;

struct fiber {
    context::fcontext_t where = nullptr;
    fiber* following = nullptr;
    fiber* waiting = nullptr;  // the gate: who waits at it, and the messages that lie there
    std::uint64_t messages = 0;
    fiber* next = nullptr;  // of the cycle
    std::uint64_t place = 0;
};

template <bool Lifo>
class boost_part final : public part {
public:
    explicit boost_part(const shape& s)
        : ring_(s), fibers_(s.fibers()), size_(s.fibers() * slot_size) {
        bench::require(s.frame == 0, "no larger frames here");
        void* const got = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        bench::require(got != MAP_FAILED, "mmap of the stacks");
        ::madvise(got, size_, MADV_NOHUGEPAGE);
        stacks_ = static_cast<std::byte*>(got);
    }
    ~boost_part() override { ::munmap(stacks_, size_); }

    void prepare() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            for (std::uint64_t place = ring_.length; place-- > 0;) {
                fiber* const first = &fibers_[cycle * ring_.length];
                fiber& f = first[place];
                f.next = first + (place + 1) % ring_.length;
                f.place = place;
                std::byte* const top =
                    stacks_ + static_cast<std::size_t>(&f - fibers_.data() + 1) * slot_size;
                f.where = context::make_fcontext(top, slot_size, &entry);
                push(&f);
            }
        go();
    }

    void run() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            wake(fibers_[cycle * ring_.length]);
        go();
    }

    [[nodiscard]] tally result() const override { return sum_; }

private:
    // What goes along with a jump.
    struct travel {
        boost_part* whole;
        fiber* left;  // nullptr: it has ended
    };

    static void entry(context::transfer_t from) {
        boost_part& whole = *static_cast<travel*>(from.data)->whole;
        fiber& me = *whole.current_;
        arrived(from);
        whole.go_round(me);
        fiber* const next = whole.pop();
        whole.current_ = next;
        travel last{&whole, nullptr};
        context::jump_fcontext(next != nullptr ? next->where : whole.start_->where, &last);
    }

    static void arrived(context::transfer_t from) {
        const travel& with = *static_cast<travel*>(from.data);
        if (with.left != nullptr) with.left->where = from.fctx;
    }

    void go() {
        fiber thread;
        start_ = &thread;
        current_ = pop();
        travel with{this, &thread};
        arrived(context::jump_fcontext(current_->where, &with));
    }

    bool pass(fiber& me) {
        if (me.messages > 0) {
            --me.messages;
            return false;
        }
        me.waiting = &me;
        fiber* const next = pop();
        current_ = next;
        travel with{this, &me};
        arrived(context::jump_fcontext(next != nullptr ? next->where : start_->where, &with));
        return true;
    }

    void wake(fiber& f) {
        if (fiber* const woken = std::exchange(f.waiting, nullptr))
            push(woken);
        else
            ++f.messages;
    }

    void go_round(fiber& me) {
        if (me.place == 0) pass(me);
        const std::uint64_t rounds = ring_.rounds;
        const std::uint64_t last = ring_.strict ? 0 : ring_.length - 1;
        std::uint64_t suspended = 0;
        std::uint64_t turn = 0;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            if (turn == me.place) {
                wake(*me.next);
                if (pass(me)) ++suspended;
            } else {
                if (pass(me)) ++suspended;
                wake(*me.next);
            }
            turn = turn == last ? 0 : turn + 1;
        }
        sum_.add(rounds, suspended);
    }

    void push(fiber* f) {
        if constexpr (Lifo) {
            f->following = head_;
            head_ = f;
        } else {
            f->following = nullptr;
            if (head_ == nullptr)
                head_ = f;
            else
                tail_->following = f;
            tail_ = f;
        }
    }

    [[nodiscard]] fiber* pop() {
        fiber* const f = head_;
        if (f != nullptr) head_ = f->following;
        return f;
    }

    const shape ring_;
    std::vector<fiber> fibers_;
    std::size_t size_;
    std::byte* stacks_ = nullptr;
    fiber* head_ = nullptr;
    fiber* tail_ = nullptr;
    fiber* current_ = nullptr;
    fiber* start_ = nullptr;  // the thread itself
    tally sum_;
};

template <bool Lifo>
std::unique_ptr<part> make(const shape& s) {
    return std::make_unique<boost_part<Lifo>>(s);
}

constexpr row rows[] = {
    {.key = "fifo",
     .title = "Boost.Context, FIFO",
     .make = make<false>,
     .most_fibers = 2'000'000,
     .why = "not tried: 16 GiB and more",
     .bytes = 4'300},
    {.key = "lifo",
     .title = "Boost.Context, LIFO",
     .make = make<true>,
     .most_fibers = 2'000'000,
     .why = "not tried: 16 GiB and more",
     .bytes = 4'300,
     .sparse = true},
};

}  // namespace

int main(int argc, char** argv) {
    bench::about("Boost.Context " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    return bench::ring::main(argc, argv, rows);
}
