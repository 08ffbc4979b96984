// hunger.cpp - see hunger.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/hunger.hpp"

#include <algorithm>

#include "fiber/fiber_census.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

void hunger::add(fiber_worker& worker) {
    const std::lock_guard lock(mutex_);
    workers_.push_back(&worker);
}

void hunger::remove(fiber_worker& worker) noexcept {
    const std::lock_guard lock(mutex_);
    workers_.erase(std::find(workers_.begin(), workers_.end(), &worker));
}

bool hunger::wait(fiber_block& block) noexcept {
    const std::lock_guard lock(mutex_);
    any_.exchange(1, std::memory_order_acq_rel);
    std::ptrdiff_t out = 0;
    for (const fiber_worker* one : workers_) out += one->stacks_out.load(std::memory_order_relaxed);
    if (out <= 0) {
        if (first_ == nullptr) any_.store(0, std::memory_order_relaxed);
        return false;
    }
    static constexpr wait_reason reason{"waits for a stack"};
    block.reason.store(&reason, std::memory_order_relaxed);
    block.next_node = nullptr;
    (first_ == nullptr ? first_ : last_->next_node) = &block;
    last_ = &block;
    return true;
}

std::vector<const fiber_block*> hunger::running() const {
    std::vector<const fiber_block*> those;
    const std::lock_guard lock(mutex_);
    for (const fiber_worker* const one : workers_) those.push_back(running_on(*one));
    return those;
}

void hunger::feed() noexcept {
    fiber_block* fed = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (first_ == nullptr) return;
        fed = static_cast<fiber_block*>(first_);
        first_ = first_->next_node;
        if (first_ == nullptr) any_.store(0, std::memory_order_relaxed);
    }
    fed->reason.store(nullptr, std::memory_order_relaxed);
    fed->home->post(fed);
}

}  // namespace weft::inline v0::detail
