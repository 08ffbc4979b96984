# links_with_lto.sh - with link time optimisation a program gets the thread_local out of the static
# library though an asm alone refers to it (include/weft/base/thread_block.hpp), and finds its own.
#
# SPDX-License-Identifier: Apache-2.0
set -u
archiver=${CXX%g++*}gcc-ar${CXX##*g++}
if [[ -n $EMULATOR || -n $SANITIZE || $CXX != *g++* ]] || ! command -v "$archiver" >/dev/null; then
    echo "needs g++ and its gcc-ar, without sanitizers"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/user.cpp" <<'PROGRAM'
#include <weft/base/thread_block.hpp>
#include <thread>
int main() {
    const auto* const here = &weft::detail::this_thread_block();
    const weft::detail::thread_block* there = nullptr;
    std::thread([&] { there = &weft::detail::this_thread_block(); }).join();
    return here != there && weft::detail::fibers_of_this_thread() == nullptr ? 0 : 1;
}
PROGRAM
cd "$scratch" || exit 1
flags=(-std=c++23 -O2 -flto=auto -fno-fat-lto-objects -Werror -pthread)
"$CXX" "${flags[@]}" -I "$SOURCE_DIR/include" -I "$SOURCE_DIR/src" -c user.cpp \
    "$SOURCE_DIR/src/base/thread_block.cpp" "$SOURCE_DIR/src/base/version.cpp" &&
    "$archiver" cr libbase.a thread_block.o version.o &&
    "$CXX" "${flags[@]}" user.o libbase.a -o user &&
    ./user
