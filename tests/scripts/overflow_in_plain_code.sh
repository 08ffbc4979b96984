# overflow_in_plain_code.sh - in a user's code that was compiled without -fstack-clash-protection a
# frame of 96 KiB, or an alloca of as much, is reported wherever on the stack it begins.
#
# SPDX-License-Identifier: Apache-2.0
set -u
library=$PROGRAM_DIR/../../libweft.a
if [[ -n $EMULATOR || -n $SANITIZE || ! -f $library ]]; then
    echo "needs the static library of an ordinary build"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/user.cpp" <<'PROGRAM'
#include <alloca.h>

#include <cstdint>
#include <string_view>

#include <weft/coroutine/coroutine.hpp>

constexpr std::size_t size = 96 * 1024;

// What is touched is the far end alone.
[[gnu::noinline]] void take_frame() {
    volatile char frame[size];
    asm volatile("" : : "r"(frame) : "memory");
    frame[0] = 1;
}
[[gnu::noinline]] void take_alloca(std::size_t bytes) {
    auto* const memory = static_cast<volatile char*>(alloca(bytes));
    asm volatile("" : : "r"(memory) : "memory");
    memory[0] = 1;
}

// Goes down to the last 2 KiB of the stack.
[[gnu::noinline]] void at_the_end(weft::coroutine& of, void (*function)()) {
    volatile char frame[256];
    frame[0] = 1;
    const auto left = reinterpret_cast<std::uintptr_t>(&frame[0]) -
                      reinterpret_cast<std::uintptr_t>(of.backend().where().low);
    if (left > 2048) at_the_end(of, function); else function();
    asm volatile("" : : "r"(frame) : "memory");
}

int main(int, char** argv) {
    const std::string_view way = argv[1];
    const weft::coroutine_options options{.name = "parser", .stack_size = 64 * 1024};
    const auto yield = [] { weft::this_coroutine::yield(); };
    weft::coroutine below(options, yield);
    weft::coroutine* self = nullptr;
    weft::coroutine parser(options, [&] {
        if (way == "frame") at_the_end(*self, take_frame);
        if (way == "alloca") at_the_end(*self, [] { take_alloca(size); });
    });
    self = &parser;
    weft::coroutine above(options, yield);
    below.resume();
    above.resume();
    parser.resume();
}
PROGRAM
symbols=$(nm "$library" 2>/dev/null)
[[ $symbols == *_portable_switch_1* ]] && switch=1 || switch=0
[[ $symbols == *_checks_1* ]] && checks=1 || checks=0
for optimised in -O0 -O2; do
    if ! "$CXX" -std=c++23 $optimised -fno-stack-clash-protection -I "$SOURCE_DIR/include" \
        -DWEFT_PORTABLE_SWITCH=$switch -DWEFT_CHECKS=$checks "$scratch/user.cpp" "$library" \
        $LINK_FLAGS -pthread -o "$scratch/user"; then
        exit 1
    fi
    for way in frame alloca; do
        { (ulimit -c 0; "$scratch/user" "$way") >"$scratch/log" 2>&1; } 2>/dev/null
        if ! grep -q "^weft: stack overflow in coroutine 'parser'" "$scratch/log"; then
            echo "$optimised, $way: not reported"
            cat "$scratch/log"
            exit 1
        fi
    done
done
echo "reported"
