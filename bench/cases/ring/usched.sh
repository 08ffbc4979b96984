#!/usr/bin/env bash
# usched.sh - the ring as usched's own benchmark program plays it; see checkouts.cpp.
#
#   usched N R M D P
#   usched --version
#
# Beside it lies usched_rmain, which was built from a checkout (bench/checkouts.cmake, USCHED_DIR),
# and for one thread usched_rmain_1, the same without locks (-DSINGLE_THREAD). The last word that it
# says is the seconds, and it checks nothing; what it should have done is added here, so that this
# row alone is unchecked.
#
# SPDX-License-Identifier: Apache-2.0
if [[ ${1:-} =~ ^(-h|--help)$ ]]; then sed -n '2,/SPDX/{/SPDX/!s/^# \{0,1\}//p}' "$0"; exit; fi
set -euo pipefail
if [[ ${1:-} == --version ]]; then
    cat "$(dirname "$0")/usched_version" 2>/dev/null || echo usched
    exit
fi
program=$(dirname "$0")/usched_rmain
if [[ $5 == 1 ]]; then program+=_1; fi
said=$("$program" "$1" "$2" "$3" "$4" "$5")
echo "$(($1 * $2)) $(($1 * $2 * $3)) ${said##* }"
