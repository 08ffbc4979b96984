// context_memory.cpp - contexts on stacks from malloc, switching, throwing, nesting; for valgrind.
//
//     context_memory native|portable
//
// Prints "right" and ends with status 0 if all sums are right. The stacks are registered with
// valgrind where its header is installed.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/valgrind.hpp"

namespace {

constexpr std::size_t stack_size = std::size_t{64} * 1024;

template <class Context>
class summer {
public:
    explicit summer(int depth) : depth_(depth) {
        registered_ = VALGRIND_STACK_REGISTER(memory_, memory_ + stack_size);
        inside_ = Context::make({memory_, stack_size}, &summer::enter, this);
    }
    summer(const summer&) = delete;
    summer& operator=(const summer&) = delete;
    ~summer() {
        VALGRIND_STACK_DEREGISTER(registered_);
        std::free(memory_);
    }

    void step() { Context::swap(outside_, inside_); }
    long sum() const { return sum_; }

private:
    static void enter(void* argument) {
        auto& me = *static_cast<summer*>(argument);
        me.run();
        Context::jump(me.outside_);
    }

    void run() {
        long numbers[100];
        for (long i = 0; i < 100; ++i) {
            numbers[i] = i;
            Context::swap(inside_, outside_);
        }
        if (depth_ > 0) {
            summer inner(depth_ - 1);
            for (int i = 0; i <= 101; ++i) inner.step();
            sum_ += inner.sum();
        }
        try {
            throw 1L;
        } catch (long one) {
            Context::swap(inside_, outside_);
            sum_ += one;
        }
        for (long number : numbers) sum_ += number;
    }

    std::byte* memory_ = static_cast<std::byte*>(std::malloc(stack_size));
    unsigned registered_ = 0;
    int depth_;
    long sum_ = 0;
    Context inside_;
    Context outside_;
};

template <class Context>
int run() {
    long sum = 0;
    for (int round = 0; round < 20; ++round) {
        summer<Context> first(2);
        summer<Context> second(0);
        for (int i = 0; i <= 101; ++i) {
            first.step();
            second.step();
        }
        sum += first.sum() + second.sum();
    }
    const bool right = sum == 20 * 4 * (4950 + 1);
    std::puts(right ? "right" : "wrong");
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const bool portable = argc == 2 && std::string_view(argv[1]) == "portable";
    return portable ? run<weft::portable_context>() : run<weft::context>();
}
