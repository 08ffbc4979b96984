// level_loader.cpp - loading a level: a tree of tasks, eight deep, each of which waits for its
// children, on one worker.
//
// First on a plain pool of threads, as most are written: a task that waits for its children holds
// its thread, and with one thread the children never get to run. It is seen to be stuck by a
// deadline. Then the same tree as fibers on a weft pool of one worker: whoever waits lets go of
// the worker.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

using namespace std::chrono_literals;

// --- the tree: a level of models, a model of meshes and materials, those of ever smaller parts

struct asset {
    std::string name;
    std::vector<asset> parts;
};

asset make_level(const std::string& name, int depth) {
    static const char* const kinds[] = {"texel", "tile",  "texture", "material",
                                        "mesh",  "model", "area",    "level"};
    asset made{name + "/" + kinds[depth - 1], {}};
    if (depth > 1)
        for (const char* which : {"a", "b"})
            made.parts.push_back(make_level(name + which, depth - 1));
    return made;
}

std::size_t count(const asset& one) {
    std::size_t all = 1;
    for (const asset& part : one.parts) all += count(part);
    return all;
}

// --- a plain pool: tasks in a queue, a thread that runs them

class plain_pool {
public:
    plain_pool() : thread_([this] { work(); }) {}
    ~plain_pool() {
        add({});
        thread_.join();
    }
    void add(std::function<void()> task) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_one();
    }

private:
    void work() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !tasks_.empty(); });
            const std::function<void()> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            if (!task) return;
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::thread thread_;
};

struct plain_loader {
    std::chrono::steady_clock::time_point deadline;
    std::atomic<std::size_t> loaded = 0;
    std::atomic<bool> stuck = false;
    plain_pool pool{};  // the last one, so the first to end: its tasks use the others

    void load(const asset& one) {
        std::vector<std::future<void>> parts;
        for (const asset& part : one.parts) {
            auto done = std::make_shared<std::promise<void>>();
            parts.push_back(done->get_future());
            pool.add([this, &part, done] {
                if (!stuck) load(part);
                done->set_value();
            });
        }
        for (std::future<void>& part : parts)
            if (part.wait_until(deadline) == std::future_status::timeout) stuck = true;
        if (!stuck) ++loaded;
    }
};

// --- the same as fibers

void load(const asset& one, std::atomic<std::size_t>& loaded) {
    std::vector<weft::fiber> parts;
    for (const asset& part : one.parts) parts.emplace_back([&] { load(part, loaded); });
    for (weft::fiber& part : parts) part.join();
    ++loaded;
}

int main() {
    const asset level = make_level("", 8);
    std::printf("a level of %zu assets, eight deep; each waits for its parts\n", count(level));

    bool stuck = false;
    {
        std::promise<void> done;
        plain_loader loader{std::chrono::steady_clock::now() + 200ms};
        loader.pool.add([&] {
            loader.load(level);
            done.set_value();
        });
        done.get_future().wait();
        stuck = loader.stuck;
        std::printf("plain pool, one thread:  %s after 200 ms, %zu loaded\n",
                    stuck ? "stuck" : "done", loader.loaded.load());
    }

    std::atomic<std::size_t> loaded = 0;
    weft::pool workers({.workers = 1});
    const auto began = std::chrono::steady_clock::now();
    weft::go(workers, [&] { load(level, loaded); });
    workers.drain();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    std::printf("weft pool, one worker:   done after %.0f us, %zu loaded\n", took.count(),
                loaded.load());
    return stuck && loaded == count(level) ? 0 : 1;
}
