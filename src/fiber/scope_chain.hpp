// scope_chain.hpp - a fiber's cancel scopes, taken together.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <stop_token>

#include "fiber/fiber_extras.hpp"

namespace weft::inline v0 {

namespace detail {
/// Sources that are to be told without the lock. No memory is needed for them: if there are more,
/// they are asked for again once these were told.
struct sources_to_tell {
    static constexpr std::size_t most = 8;

    std::array<std::optional<std::stop_source>, most> all;
    std::size_t count = 0;

    void add(const std::optional<std::stop_source>& one) noexcept {
        if (count < most && one && !one->stop_requested()) all[count++] = one;
    }
};
}  // namespace detail

/// What concerns the chain as a whole. The block's lock is held.
class scope_chain {
public:
    /// acquire: pairs with the release of cancel_scope().
    static cancel_scope* innermost(const detail::fiber_extras& extras) noexcept {
        return extras.scope.load(std::memory_order_acquire);
    }
    /// The reason that counts for a scope; for the fiber itself, if that is nullptr.
    static cancel_reason effective(const detail::fiber_block& block,
                                   const cancel_scope* scope) noexcept {
        for (; scope != nullptr; scope = scope->parent_) {
            if (scope->reason_ != cancel_reason::none) return scope->reason_;
            if (scope->shielded_) return cancel_reason::none;
        }
        return reason_of(block);
    }
    /// The fiber's own; that of its group, if it has never waited and so was not asked to stop.
    /// acquire: pairs with the group's release.
    static cancel_reason reason_of(const detail::fiber_block& block) noexcept {
        const bool asked =
            (block.attention.load(std::memory_order_acquire) & detail::unenlisted_bit) == 0;
        if (asked || block.stop_reason != cancel_reason::none) return block.stop_reason;
        return const_cast<detail::fiber_block&>(block).group().reason.load(
            std::memory_order_acquire);
    }
    static cancel_reason effective(const cancel_scope& scope) noexcept {
        return effective(scope.owner_, &scope);
    }
    /// For the innermost one.
    static cancel_reason effective(const detail::fiber_block& block) noexcept {
        return effective(block, block.extras != nullptr ? innermost(*block.extras) : nullptr);
    }

    /// With the block's lock held, which is what changes the bit.
    static void set_bit(detail::fiber_block& block) noexcept {
        const bool is_set =
            (block.attention.load(std::memory_order_relaxed) & detail::cancelled_bit) != 0;
        const bool wanted = effective(block) != cancel_reason::none;
        if (wanted == is_set) return;
        if (wanted)
            block.attention.fetch_or(detail::cancelled_bit, std::memory_order_seq_cst);
        else
            block.attention.fetch_and(static_cast<std::uint8_t>(~detail::cancelled_bit),
                                      std::memory_order_seq_cst);
    }

    /// The sources of all scopes that are cancelled now and were not told yet.
    static detail::sources_to_tell sources(const detail::fiber_block& block) noexcept {
        detail::sources_to_tell told;
        if (block.extras == nullptr) return told;
        if (block.stop_reason != cancel_reason::none) told.add(block.extras->source);
        for (cancel_scope* scope = innermost(*block.extras); scope != nullptr;
             scope = scope->parent_)
            if (effective(*scope) != cancel_reason::none) told.add(scope->source_);
        return told;
    }
};

namespace detail {
/// After a reason was set: wakes the fiber if it waits, then tells the stop sources.
void act_on_reason(fiber_block& block, const sources_to_tell& told) noexcept;
}  // namespace detail

}  // namespace weft::inline v0
