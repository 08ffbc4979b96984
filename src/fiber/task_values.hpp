// task_values.hpp - the table of a fiber's task locals.
//
// A hash table by the address of the local, never more than half full, and never changed once it is
// made: so fibers on several threads share it, and a look takes one probe, hardly ever two.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <weft/fiber/detail/task_values.hpp>

namespace weft::inline v0::detail {

class task_values {
public:
    /// Those of `before`, which may be nullptr, and one more.
    task_values(const task_values* before, const void* key, std::shared_ptr<const void> value);

    [[nodiscard]] const void* find(const void* key) const noexcept;

    void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    /// True: that was the last. acq_rel: what each holder read happens before the end.
    [[nodiscard]] bool drop() noexcept {
        return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

private:
    struct entry {
        const void* key = nullptr;
        std::shared_ptr<const void> value;
    };
    [[nodiscard]] std::size_t place_of(const void* key) const noexcept;
    void put(const void* key, std::shared_ptr<const void> value);

    std::vector<entry> entries_;  // a power of two
    std::size_t used_ = 0;
    std::atomic<std::uint32_t> references_ = 1;
};

/// Of the running fiber, counted for another.
[[nodiscard]] task_values* inherited_values() noexcept;
void drop_values(task_values& values) noexcept;
inline void release_values(task_values* values) noexcept {
    if (values != nullptr) drop_values(*values);
}

}  // namespace weft::inline v0::detail
