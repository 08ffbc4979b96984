# refuses_mixed_builds.sh - a program built with another sanitizer setting than the library does not
# link, and the linker's message names the setting (include/weft/base/version.hpp).
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
#include <weft/coroutine/coroutine.hpp>
int main() { weft::coroutine([] {}).resume(); }
PROGRAM
build() {
    # The library's own compiler and linker: built for link-time optimisation, no other can read it.
    "$CXX" -std=c++23 -I "$SOURCE_DIR/include" $1 "$scratch/user.cpp" "$library" $LINK_FLAGS \
        -pthread -o "$scratch/user" >"$scratch/log" 2>&1
}
portable=$(nm "$library" 2>/dev/null | grep -c 'portable_switch_1')
same=$([[ $portable -gt 0 ]] && echo -DWEFT_PORTABLE_SWITCH=1)
if ! build "$same"; then
    echo "a program with the library's own settings did not link:"
    cat "$scratch/log"
    exit 1
fi
for other in -fsanitize=address -fsanitize=thread; do
    if build "$same $other"; then
        echo "linked with $other, though the library is built without"
        exit 1
    fi
    if ! grep -q 'weft_0_1_built_with_sanitizer_' "$scratch/log"; then
        echo "the linker's message does not name the setting:"
        cat "$scratch/log"
        exit 1
    fi
done
echo "refused, by name"
