# refuses_mixed_builds.sh - a program built with another sanitizer, switch or setting of the checks
# than the library does not link, and the linker names the setting (include/weft/base/version.hpp).
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
# How the library was built, as it says itself.
symbols=$(nm "$library" 2>/dev/null)
[[ $symbols == *_portable_switch_1* ]] && switch=1 || switch=0
[[ $symbols == *_checks_1* ]] && checks=1 || checks=0
same="-DWEFT_PORTABLE_SWITCH=$switch -DWEFT_CHECKS=$checks"
if ! build "$same"; then
    echo "a program with the library's own settings did not link:"
    cat "$scratch/log"
    exit 1
fi
for other in -fsanitize=address -fsanitize=thread -DWEFT_PORTABLE_SWITCH=$((1 - switch)) \
    -DWEFT_CHECKS=$((1 - checks)); do
    case $other in
        -D*) build "$same -U${other:2:-2} $other" ;;
        *) build "$same $other" ;;
    esac
    if [[ $? == 0 ]]; then
        echo "linked with $other, though the library is built otherwise"
        exit 1
    fi
    if ! grep -q 'weft_0_1_built_with_sanitizer_' "$scratch/log"; then
        echo "the linker's message does not name the setting:"
        cat "$scratch/log"
        exit 1
    fi
done
echo "refused, by name"
