// thread_backend.cpp - the thread back end and the cache of its threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <vector>

#include <weft/base/assert.hpp>
#include <weft/coroutine/backend.hpp>
#include <weft/coroutine/coroutine_block.hpp>
#include <weft/coroutine/thread_cache.hpp>

#include "coroutine/coroutine_thread.hpp"
#include "stack/sizes.hpp"

namespace weft::inline v0 {

struct thread_cache::implementation {
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<detail::coroutine_thread>> idle;
    std::size_t started = 0;
    std::size_t in_use = 0;

    detail::coroutine_thread* take(std::size_t stack_size) {
        const std::lock_guard lock(mutex);
        // The one given back last, if its stack is large enough: it is the warmest.
        for (auto thread = idle.end(); thread != idle.begin();) {
            if ((*--thread)->stack_size() < stack_size) continue;
            detail::coroutine_thread* const found = thread->release();
            idle.erase(thread);
            ++in_use;
            return found;
        }
        idle.reserve(idle.size() + in_use + 1);  // so that give_back() never allocates
        auto* const made = new detail::coroutine_thread(stack_size);
        ++started;
        ++in_use;
        return made;
    }

    void give_back(detail::coroutine_thread* thread) noexcept {
        const std::lock_guard lock(mutex);
        --in_use;
        idle.emplace_back(thread);
    }
};

thread_cache::thread_cache() : implementation_(std::make_unique<implementation>()) {}

thread_cache::~thread_cache() {
    WEFT_ASSERT(implementation_->in_use == 0,
                "thread_cache: destroyed while coroutines use its threads");
}

std::size_t thread_cache::idle() const noexcept {
    const std::lock_guard lock(implementation_->mutex);
    return implementation_->idle.size();
}

std::size_t thread_cache::started() const noexcept {
    const std::lock_guard lock(implementation_->mutex);
    return implementation_->started;
}

thread_backend::thread_backend(const coroutine_options& options, context_entry entry,
                               void* argument)
    : thread_backend(options, entry, argument,
                     *static_cast<basic_coroutine_block<thread_backend>*>(argument)) {}

thread_backend::thread_backend(const coroutine_options& options, context_entry entry,
                               void* argument, detail::activity& runs)
    : threads_(options.threads) {
    detail::require_sensible_size(options.stack_size);
    thread_ = threads_ != nullptr ? threads_->implementation_->take(options.stack_size)
                                  : new detail::coroutine_thread(options.stack_size);
    thread_->set_body(entry, argument, runs, options.measure_stack);
}

thread_backend::~thread_backend() { reclaim(); }

void thread_backend::enter() { thread_->enter(); }

void thread_backend::leave() { thread_->leave(); }

void thread_backend::reclaim() noexcept {
    if (thread_ == nullptr) return;
    if (threads_ != nullptr)
        threads_->implementation_->give_back(thread_);
    else
        delete thread_;
    thread_ = nullptr;
}

// Known once the thread runs; it then sets the bounds in the block itself.
stack thread_backend::where() const noexcept { return {}; }

}  // namespace weft::inline v0
