#!/usr/bin/env bash
# usched.sh - the ring as usched's own benchmark program plays it; see checkouts.cpp.
#
#   usched N R M D P
#
# Beside it lies usched_rmain, which was built from a checkout (bench/CMakeLists.txt, USCHED_DIR).
# That says only the seconds, and checks nothing; what it should have done is added here, so that
# this row alone is unchecked.
#
# SPDX-License-Identifier: Apache-2.0
if [[ ${1:-} == --help ]]; then sed -n '2,/SPDX/{/SPDX/!s/^# \{0,1\}//p}' "$0"; exit; fi
set -euo pipefail
seconds=$("$(dirname "$0")/usched_rmain" "$1" "$2" "$3" "$4" "$5")
echo "$(($1 * $2)) $(($1 * $2 * $3)) $seconds"
