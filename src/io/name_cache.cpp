// name_cache.cpp - see name_cache.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/name_cache.hpp"

#include <algorithm>

namespace weft::inline v0::detail {

std::optional<std::vector<io::address>> name_cache::find(const std::string& key,
                                                         clock_source& clock) {
    const time_point now = clock.now();
    const std::lock_guard guard(lock_);
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.clock != &clock) return std::nullopt;
    if (at->second.until <= now) {
        entries_.erase(at);
        return std::nullopt;
    }
    kept.fetch_add(1, std::memory_order_relaxed);
    return at->second.found;
}

void name_cache::keep(const std::string& key, const std::vector<io::address>& found,
                      clock_source& clock, time_point until) {
    if (most_ == 0 || until <= clock.now()) return;
    entry fresh{found, &clock, until};
    const std::lock_guard guard(lock_);
    if (entries_.size() >= most_ && !entries_.contains(key)) make_room();
    entries_.insert_or_assign(key, std::move(fresh));
}

void name_cache::clear() noexcept {
    const std::lock_guard guard(lock_);
    entries_.clear();
}

void name_cache::make_room() {
    entries_.erase(
        std::ranges::min_element(entries_, {}, [](const auto& one) { return one.second.until; }));
}

}  // namespace weft::inline v0::detail
