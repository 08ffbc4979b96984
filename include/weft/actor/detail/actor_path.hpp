// actor_path.hpp - which contexts a fiber goes back to when it leaves the one that it is in.
//
// It lies in the context that the fiber is in, for only one is inside of that, and goes with the
// fiber when it lets the context go: to its stack over a wait, to the next context when it enters
// one. So no fiber needs memory for it, and a context stands still at two steps; what is further
// out than that is on the heap.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

class actor_context;

namespace detail {

class actor_path {
public:
    struct step {
        const actor_context* context = nullptr;
        std::uint32_t again = 0;  // how often it had been entered again
    };
    struct further {
        step one;
        further* next;
    };
    using room = std::unique_ptr<further>;

    /// Entered once, from outside of all contexts.
    [[nodiscard]] bool is_plain() const noexcept {
        return (again | reinterpret_cast<std::uintptr_t>(outer_[0].context)) == 0;
    }
    /// The context around, or nullptr.
    [[nodiscard]] const actor_context* outer() const noexcept { return outer_[0].context; }

    /// What inside() will need. Fails: std::bad_alloc, at the fourth context.
    [[nodiscard]] room room_for_one_more() const {
        return outer_[1].context != nullptr ? std::make_unique<further>() : nullptr;
    }
    /// Of a fiber that goes from `left`, where it has this path, into another.
    [[nodiscard]] actor_path inside(const actor_context& left, room for_one_more) const noexcept {
        actor_path path;
        path.outer_[0] = {&left, again};
        path.outer_[1] = outer_[0];
        if (for_one_more != nullptr) {
            *for_one_more = {outer_[1], further_};
            path.further_ = for_one_more.release();
        }
        return path;
    }
    /// Of the same fiber once it is back in outer().
    [[nodiscard]] actor_path outside() const noexcept {
        actor_path path;
        path.again = outer_[0].again;
        path.outer_[0] = outer_[1];
        if (further_ != nullptr) {
            const room first(further_);
            path.outer_[1] = first->one;
            path.further_ = first->next;
        }
        return path;
    }

    std::uint32_t again = 0;  // how often the context was entered by whoever was in it

private:
    step outer_[2];
    further* further_ = nullptr;
};

}  // namespace detail
}  // namespace weft::inline v0
