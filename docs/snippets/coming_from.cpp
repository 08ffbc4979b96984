// coming_from.cpp - the snippets of the pages for those who come from elsewhere.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace from_threads {

// [counter]
// As it was, with std:: in place of weft::.
class counter {
public:
    int increment() {
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
        return ++value_;
    }
    void wait_for(int value) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return value_ >= value; });
    }

private:
    weft::mutex mutex_;
    weft::condition_variable changed_;
    int value_ = 0;
};
// [/counter]

int many() {
    counter c;
    // [main]
    weft::run([&] {
        std::vector<weft::fiber> fibers;  // were std::jthread
        for (int i = 0; i < 10'000; ++i) fibers.emplace_back([&] { c.increment(); });
        c.wait_for(10'000);
    });
    // [/main]
    return c.increment();
}

}  // namespace from_threads

namespace from_go {

using namespace weft;

int squares() {
    // [workers]
    return run([] {
        channel<int> jobs(100);     // jobs := make(chan int, 100)
        channel<int> results(100);  // results := make(chan int, 100)
        wait_group workers;         // var workers sync.WaitGroup
        for (int w = 0; w < 3; ++w) {
            workers.add();
            go([&] {                          // go func() {
                auto done = workers.guard();  //     defer workers.Done()
                for (int j : jobs) results.send(j * j).value();
            });
        }
        for (int j = 1; j <= 5; ++j) jobs.send(j).value();
        jobs.close();  // close(jobs)
        workers.wait();
        results.close();
        int sum = 0;
        for (int r : results) sum += r;
        return sum;
    });
    // [/workers]
}

int with_context() {
    // [context]
    return run([] {
        channel<int> never;
        auto got = with_timeout(2ms, [&] {  // ctx, cancel := WithTimeout(...)
            return never.receive();         // select { case <-never: case <-ctx.Done(): }
        });
        return got ? 1 : 0;
    });
    // [/context]
}

}  // namespace from_go

namespace from_boost {

using namespace weft;

int both() {
    // [boost]
    return run([] {                                     // no use_scheduling_algorithm<>()
        future<int> answer = async([] { return 42; });  // boost::fibers::async
        channel<std::string> words(16);                 // buffered_channel<std::string>
        fiber reader([&] {                              // boost::fibers::fiber
            for (const std::string& word : words) (void)word;
        });
        words.send("hello").value();  // push(), whose status nobody looks at
        words.close();
        reader.join();
        return answer.get();
    });
    // [/boost]
}

}  // namespace from_boost

int main() {
    check(from_threads::many() == 10'001, "counted");
    check(from_go::squares() == 55, "squares");
    check(from_go::with_context() == 0, "timed out");
    check(from_boost::both() == 42, "answer");
    return 0;
}
