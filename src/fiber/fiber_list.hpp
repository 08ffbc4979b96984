// fiber_list.hpp - the fibers of one executor that wait or have waited, for stopping and for dumps.
//
// One that ends before it ever waits is never listed, and costs nothing here; dumps find it by a
// census (fiber_census.hpp).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <weft/exec/worker.hpp>

#include "fiber/fiber_block.hpp"
#include "fiber/fiber_census.hpp"
#include "fiber/hunger.hpp"

namespace weft::inline v0::detail {

/// Thread-safe.
class fiber_list final : public residents {
public:
    explicit fiber_list(executor& home);
    fiber_list(const fiber_list&) = delete;
    fiber_list& operator=(const fiber_list&) = delete;
    ~fiber_list() override;

    /// The executor's, made at first use.
    static fiber_list& of(executor& home);

    void add(fiber_block& block) noexcept;
    static void remove(fiber_block& block) noexcept;

    void stop_all() noexcept override;
    void describe(const std::function<void(std::string_view)>& line) const override;
    /// Whether those that start now are cancelled from the beginning.
    [[nodiscard]] bool stopping() const noexcept {
        return home_.stopping_.load(std::memory_order_acquire);
    }

    hunger hungry;

    /// Those of all executors.
    static void describe_all(const std::function<void(std::string_view)>& line);

private:
    // A line for each that is listed, and for those of `found` that are not.
    [[nodiscard]] std::vector<std::string> lines(std::span<const fiber_place> found) const;

    // Where one who walks the list without the lock goes on; whoever is removed moves it on.
    struct cursor {
        fiber_block* next;
        cursor* other;  // of another walk
    };

    executor& home_;
    mutable std::mutex mutex_;
    // Guarded by it:
    fiber_block* first_ = nullptr;
    cursor* cursors_ = nullptr;
    // Among all lists; guarded by the registry's mutex.
    fiber_list* next_list_ = nullptr;
    fiber_list* previous_list_ = nullptr;
};

}  // namespace weft::inline v0::detail
