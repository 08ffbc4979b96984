// caching_service.cpp - an actor that caches what it fetches.
//
// The service is isolated by an actor_context: one fiber at a time is inside, so the map needs no
// thought. A fetch is slow, and while it waits the service is open to others: a read of another key
// goes on, and a second request for the same key finds the fetch that is under way and waits for
// it.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

// [service]
class caching_service {
public:
    using fetcher = std::string (*)(const std::string& key);
    explicit caching_service(fetcher fetch) : fetch_(fetch) {}

    std::string get(const std::string& key) {
        const std::lock_guard inside(context);
        if (const auto cached = pages_.find(key); cached != pages_.end()) {
            const shared_future<std::string> page = cached->second;
            return page.get();  // maybe a wait: others come in, and `cached` may be gone after it
        }
        promise<std::string> fetched;
        pages_.emplace(key, fetched.get_future().share());
        ++fetches_;
        try {
            std::string page = fetch_(key);  // a long wait: others come in
            fetched.set_value(page);
            return page;
        } catch (...) {
            pages_.erase(key);  // looked up again: what was there before the wait may have moved
            fetched.set_exception(std::current_exception());
            throw;
        }
    }

    [[nodiscard]] int fetches() const {
        const std::lock_guard inside(context);
        return fetches_;
    }

private:
    actor_context context;  // guards all below
    std::map<std::string, shared_future<std::string>> pages_;
    int fetches_ = 0;
    const fetcher fetch_;
};
// [/service]

namespace {

std::string slow_fetch(const std::string& key) {
    sleep_for(20ms);
    if (key == "/missing") throw std::runtime_error("no such page");
    return "page " + key;
}

// How long it takes a fiber of its own.
std::chrono::nanoseconds time_of(caching_service& service, const std::string& key) {
    const auto begun = std::chrono::steady_clock::now();
    static_cast<void>(service.get(key));
    return std::chrono::steady_clock::now() - begun;
}

}  // namespace

int main() {
    return run([] {
        caching_service service(slow_fetch);
        static_cast<void>(service.get("/known"));
        std::atomic<bool> right = service.fetches() == 1;

        // Three requests for one page that is not there yet, and meanwhile reads of another.
        wait_group all(3);
        for (int i = 0; i < 3; ++i)
            go([&] {
                if (service.get("/slow") != "page /slow") right = false;
                all.done();
            });
        yield();
        const auto known = time_of(service, "/known");
        all.wait();
        std::printf("%d fetches, a cached page meanwhile in %ld us\n", service.fetches(),
                    static_cast<long>(known / 1us));
        if (service.fetches() != 2) right = false;

        // A fetch that fails fails for whoever asked, and is tried again by the next.
        for (int i = 0; i < 2; ++i) {
            try {
                static_cast<void>(service.get("/missing"));
                right = false;
            } catch (const std::runtime_error& error) {
                std::printf("/missing, asked for the %s time: %s\n", i == 0 ? "first" : "second",
                            error.what());
            }
        }
        return right && service.fetches() == 4 ? 0 : 1;
    });
}
