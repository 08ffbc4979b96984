// name_cache.hpp - answers of name servers, each kept until a moment of a clock.
//
// Thread-safe: one lock, held while a few addresses are copied.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <weft/base/clock_source.hpp>
#include <weft/io/address.hpp>

namespace weft::inline v0::detail {

class name_cache {
public:
    explicit name_cache(std::size_t most) noexcept : most_(most) {}

    /// What is kept under that key, by this clock.
    [[nodiscard]] std::optional<std::vector<io::address>> find(const std::string& key,
                                                               clock_source& clock);
    /// Until then, not included. With no place left, one goes that would go first.
    void keep(const std::string& key, const std::vector<io::address>& found, clock_source& clock,
              time_point until);
    void clear() noexcept;

    std::atomic<std::uint64_t> kept = 0;
    std::atomic<std::uint64_t> looked_up = 0;

private:
    struct entry {
        std::vector<io::address> found;
        const clock_source* clock;
        time_point until;
    };

    void make_room();

    const std::size_t most_;
    std::mutex lock_;
    // Guarded by the lock.
    std::unordered_map<std::string, entry> entries_;
};

}  // namespace weft::inline v0::detail
