// random_source.hpp - where chance comes from, so that a run can be repeated.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

class random_source {
public:
    virtual ~random_source() = default;
    /// 64 bits, evenly distributed. From: whoever runs the executor that it belongs to.
    [[nodiscard]] virtual std::uint64_t next() noexcept = 0;
};

/// The same numbers for the same seed: a counter, mixed (SplitMix64). Thread-safe: no.
class seeded_random final : public random_source {
public:
    explicit seeded_random(std::uint64_t seed) noexcept : state_(seed) {}
    [[nodiscard]] std::uint64_t next() noexcept override {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t mixed = state_;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31);
    }

private:
    std::uint64_t state_;
};

}  // namespace weft::inline v0
