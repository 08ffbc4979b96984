// same_fringe.cpp - do two trees have the same leaves in the same order?
//
// The trees have different shapes, so two loops over their leaves need two stacks: a generator
// each. The first difference ends the search, and the rest of neither tree is visited.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include <weft/weft.hpp>

using namespace weft;

struct tree {
    int leaf = 0;
    std::unique_ptr<tree> left;
    std::unique_ptr<tree> right;
};

tree leaf(int value) { return {value, nullptr, nullptr}; }

tree fork(tree left, tree right) {
    return {0, std::make_unique<tree>(std::move(left)), std::make_unique<tree>(std::move(right))};
}

int visited = 0;

void walk(const tree& t, auto& yield) {
    ++visited;
    if (t.left == nullptr) return yield(t.leaf);
    walk(*t.left, yield);
    walk(*t.right, yield);
}

generator<int> leaves(const tree& t) {
    return generator<int>([&t](auto& yield) { walk(t, yield); });
}

int main() {
    const tree a = fork(fork(leaf(1), leaf(2)), fork(leaf(3), leaf(4)));
    const tree b = fork(leaf(1), fork(leaf(2), fork(leaf(3), leaf(4))));
    const tree c = fork(leaf(7), fork(leaf(2), fork(leaf(3), leaf(4))));

    const bool same = std::ranges::equal(leaves(a), leaves(b));
    visited = 0;
    const bool differ = !std::ranges::equal(leaves(a), leaves(c));

    std::printf("((1 2) (3 4)) and (1 (2 (3 4))): %s fringe\n", same ? "the same" : "another");
    std::printf("((1 2) (3 4)) and (7 (2 (3 4))): %s, seen after %d nodes\n",
                differ ? "another fringe" : "the same fringe", visited);
    return same && differ ? 0 : 1;
}
