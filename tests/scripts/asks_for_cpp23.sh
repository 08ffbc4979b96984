# asks_for_cpp23.sh - a program compiled as older than C++23 is told so before anything else.
#
# SPDX-License-Identifier: Apache-2.0
set -u
program='#include <weft/weft.hpp>
int main() {}'
for standard in "" -std=c++20 -std=gnu++20; do
    said=$("$CXX" $standard -I "$SOURCE_DIR/include" -fsyntax-only -x c++ - 2>&1 <<<"$program")
    if ! grep 'error:' <<<"$said" | head -n 1 | grep -q 'weft needs C++23'; then
        echo "as '$standard' the first error is not that:"
        head -n 5 <<<"$said"
        exit 1
    fi
done
"$CXX" -std=c++23 -I "$SOURCE_DIR/include" -fsyntax-only -x c++ - <<<"$program" || exit 1
echo "told"
