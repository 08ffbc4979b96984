// channel_items.cpp - what a channel keeps: nodes for its items, queues of those who wait.
//
// Nodes are allocated in chunks, without the lock, and stay until the channel ends; the one given
// up last is the next to be used, while it is hot.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <new>

#include <weft/base/assert.hpp>

#include "sync/channel_lock.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr std::size_t chunk_limit = 1024;  // nodes
constexpr std::size_t made_ahead = 128;

bool is_easy(const item_type& type) noexcept {
    return type.plain && (type.size == 8 || type.size == 4);
}

constexpr std::size_t round_up(std::size_t size, std::size_t alignment) noexcept {
    return (size + alignment - 1) / alignment * alignment;
}

}  // namespace

channel_core::channel_core(const item_type& type, std::size_t capacity)
    : meets_(capacity == 0 && is_easy(type)),
      easy_(is_easy(type) ? easy : 0U),
      capacity_(capacity),
      type_(type),
      item_size_(type.size),
      item_offset_(round_up(sizeof(item_node), type.alignment)),
      node_size_(0),
      node_alignment_(std::max(type.alignment, alignof(chunk))) {
    node_size_ = round_up(item_offset_ + type.size, node_alignment_);
    if (capacity_ != 0 && capacity_ != unlimited) add_chunk(std::min(capacity_, made_ahead));
    unlock();  // so that the word says what can be done
}

channel_core::~channel_core() {
    WEFT_ASSERT(senders_.empty() && receivers_.empty(),
                "channel: destroyed while somebody waits on it");
    while (first_ != nullptr) {
        void* const item = item_in(pop());
        if (!type_.plain) type_.destroy(item);
    }
    while (chunks_ != nullptr) {
        chunk* const next = chunks_->next;
        ::operator delete(chunks_, chunks_->bytes, std::align_val_t(node_alignment_));
        chunks_ = next;
    }
}

// --- nodes

void channel_core::grow() {
    lock();
    const std::size_t have = nodes_;
    unlock();
    std::size_t more = std::clamp(have, std::size_t{1}, chunk_limit);
    if (capacity_ != 0 && have < capacity_) more = std::max(more, std::size_t{16});
    add_chunk(more);
}

void channel_core::add_chunk(std::size_t count) {
    const std::size_t header = round_up(sizeof(chunk), node_alignment_);
    const std::size_t bytes = header + count * node_size_;
    void* const memory = ::operator new(bytes, std::align_val_t(node_alignment_));
    auto* const made = ::new (memory) chunk{nullptr, bytes};
    lock();
    made->next = chunks_;
    chunks_ = made;
    nodes_ += count;
    std::byte* place = static_cast<std::byte*>(memory) + header;
    for (std::size_t i = 0; i < count; ++i, place += node_size_) {
        auto* const node = ::new (static_cast<void*>(place)) item_node{free_};
        free_ = node;
    }
    unlock();
}

// --- a swapped fiber's halves

namespace {

// One allocation: the pointers, then each waiter with room for an item behind it.
struct parked_waiter : channel_waiter {
    const item_type& type;  // the channel may be gone when the wait is over
    std::atomic<bool> any_taken = false;

    [[nodiscard]] static std::size_t room_offset(const item_type& type) noexcept {
        return round_up(sizeof(parked_waiter), type.alignment);
    }
    [[nodiscard]] static std::size_t bytes(const item_type& type) noexcept {
        return room_offset(type) + type.size;
    }
    [[nodiscard]] static std::align_val_t alignment(const item_type& type) noexcept {
        return std::align_val_t(std::max(alignof(parked_waiter), type.alignment));
    }
    [[nodiscard]] void* room() noexcept {
        return reinterpret_cast<std::byte*>(this) + room_offset(type);
    }
};

parked_waiter* park(const channel_waiter& mine) {
    const item_type& type = mine.where->type();
    void* const memory = ::operator new(parked_waiter::bytes(type), parked_waiter::alignment(type));
    auto* const made = ::new (memory) parked_waiter{mine, type};
    made->place = nullptr;
    return made;
}

void move_along(const channel_waiter& mine, parked_waiter& parked) {
    const item_type& type = parked.type;
    if (mine.place == nullptr || !(type.plain || type.nothrow)) return;
    parked.place = parked.room();
    if (!mine.sends) return;
    if (type.plain)
        std::memcpy(parked.place, mine.place, type.size);
    else
        type.move(parked.place, mine.place);
}

}  // namespace

heap_parking::heap_parking(std::span<channel_waiter*> mine)
    : mine_(mine), parked_(new channel_waiter* [mine.size()] {}) {
    try {
        for (std::size_t i = 0; i < mine_.size(); ++i) parked_[i] = park(*mine_[i]);
    } catch (...) {
        release();
        throw;
    }
    for (std::size_t i = 0; i < mine_.size(); ++i) {
        if (mine_[i]->taken != nullptr)
            parked_[i]->taken = &static_cast<parked_waiter*>(parked_[0])->any_taken;
        move_along(*mine_[i], static_cast<parked_waiter&>(*parked_[i]));
    }
}

// What was not taken goes back to where it came from, as an object of its own.
void heap_parking::bring_back() noexcept {
    is_back_ = true;
    for (std::size_t i = 0; i < mine_.size(); ++i) {
        channel_waiter& mine = *mine_[i];
        auto& parked = static_cast<parked_waiter&>(*parked_[i]);
        const item_type& type = parked.type;
        mine.what = parked.what;
        mine.item = parked.item;
        mine.first = parked.first;
        if (parked.place == nullptr) continue;
        if (type.plain) {
            if (!mine.sends && mine.what == verdict::passed)
                std::memcpy(mine.place, parked.place, type.size);
            continue;
        }
        if (mine.what != verdict::passed) {
            type.destroy(mine.place);
            type.move(mine.place, parked.place);
        }
        type.destroy(parked.place);
    }
}

// Also if a hook threw and there was no wait.
heap_parking::~heap_parking() {
    if (!is_back_) bring_back();
    release();
}

void heap_parking::release() noexcept {
    for (std::size_t i = 0; i < mine_.size(); ++i) {
        if (parked_[i] == nullptr) continue;
        auto* const one = static_cast<parked_waiter*>(parked_[i]);
        const item_type& type = one->type;
        ::operator delete(static_cast<void*>(one), parked_waiter::bytes(type),
                          parked_waiter::alignment(type));
    }
    delete[] parked_;
}

}  // namespace weft::inline v0::detail
