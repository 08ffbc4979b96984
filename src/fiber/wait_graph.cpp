// wait_graph.cpp - see wait_graph.hpp.
//
// The edges stand in a table of fixed size, for to wait allocates nothing, and a swapped fiber's
// locals cannot be read while it waits. When the table is full, later edges are not noted. An edge
// may outlive the wait for a moment, until its fiber runs; a holder forgets that it is one before
// it lets go, so what looks like a cycle is one.
//
// A fiber whose hook waits while it is about to wait has two edges, or more. The last one is what
// it waits for now, and the first to go; the others count again after it.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/wait_graph.hpp"

#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

const void* running_owner() noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    if (worker != nullptr && worker->current != nullptr) return worker->current;
    return &this_thread_block();
}

}  // namespace weft::inline v0::detail

#if defined(WEFT_CHECKS) && WEFT_CHECKS

#include <array>
#include <cstdint>
#include <mutex>

#include <weft/base/assert.hpp>

#include "base/report.hpp"

namespace weft::inline v0::detail {

namespace {

struct edge {
    const void* from = nullptr;  // nullptr: a free place
    const char* name = nullptr;  // of the fiber; nullptr: a thread
    const char* how = nullptr;
    const void* object = nullptr;
    waits_for::holder_function holder = nullptr;
    bool cancellable = false;

    [[nodiscard]] const void* to() const noexcept { return holder(object); }
};

class table {
public:
    std::mutex mutex;

    [[nodiscard]] bool add(const edge& one) noexcept {
        if (count_ == size / 2) return false;
        std::size_t at = place(one.from);
        while (edges_[at].from != nullptr) at = (at + 1) % size;
        edges_[at] = one;
        ++count_;
        return true;
    }

    // The last that was added.
    [[nodiscard]] const edge* find(const void* from) const noexcept {
        const edge* last = nullptr;
        for (std::size_t at = place(from); edges_[at].from != nullptr; at = (at + 1) % size)
            if (edges_[at].from == from) last = &edges_[at];
        return last;
    }

    // The last that was added. Those behind it in the same run move up, so that no search ends too
    // early; they keep their order.
    void remove(const void* from) noexcept {
        auto at = static_cast<std::size_t>(find(from) - edges_.data());
        edges_[at].from = nullptr;
        --count_;
        for (at = (at + 1) % size; edges_[at].from != nullptr; at = (at + 1) % size) {
            const edge moved = edges_[at];
            edges_[at].from = nullptr;
            --count_;
            static_cast<void>(add(moved));
        }
    }

private:
    static constexpr std::size_t size = 2048;
    static std::size_t place(const void* from) noexcept {
        return (reinterpret_cast<std::uintptr_t>(from) >> 6) * 0x9E3779B97F4A7C15U >> 53;
    }
    std::array<edge, size> edges_{};
    std::size_t count_ = 0;
};

// Never destroyed: others may still wait at the end of the program.
table& all_edges() noexcept {
    static table* const edges = new table;
    return *edges;
}

// How many edges from `begin` lead back to it; 0: they do not.
unsigned length_of_cycle(const table& edges, const edge& begin) noexcept {
    unsigned length = 1;
    for (const edge* at = &begin; at != nullptr && length < 1000; ++length) {
        const void* const next = at->to();
        if (next == nullptr) return 0;
        if (next == begin.from) return length;
        at = edges.find(next);
    }
    return 0;
}

// True: one of them can be cancelled.
bool describe_cycle(const table& edges, const edge& begin, unsigned length) noexcept {
    bool cancellable = false;
    report().text("weft: deadlock: these wait for each other\n").write();
    const edge* at = &begin;
    for (unsigned i = 0; i < length; ++i) {
        report line;
        if (at->name == nullptr)
            line.text("weft:   thread ").hex(at->from);
        else
            line.text("weft:   fiber ").text(at->name[0] != '\0' ? at->name : "(no name)");
        line.text(" ").text(at->how).text(" ").hex(at->object).text("\n").write();
        cancellable = cancellable || at->cancellable;
        at = edges.find(at->to());
    }
    return cancellable;
}

}  // namespace

waits_for::waits_for(const char* how, const void* object, holder_function holder,
                     bool cancellable) noexcept {
    const fiber_worker* const worker = fiber_worker::here();
    const fiber_block* const me = worker != nullptr ? worker->current : nullptr;
    const edge mine{running_owner(),
                    me != nullptr ? static_cast<const activity*>(me)->name : nullptr,
                    how,
                    object,
                    holder,
                    cancellable};
    table& edges = all_edges();
    const std::lock_guard lock(edges.mutex);
    noted_ = edges.add(mine);
    const unsigned length = noted_ ? length_of_cycle(edges, mine) : 0;
    if (length != 0 && !describe_cycle(edges, mine, length))
        fail("deadlock: each of these waits for the next");
}

waits_for::~waits_for() {
    if (!noted_) return;
    table& edges = all_edges();
    const std::lock_guard lock(edges.mutex);
    edges.remove(running_owner());
}

}  // namespace weft::inline v0::detail

#endif
