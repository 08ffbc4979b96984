# build_type.sh - who configures weft and says no build type gets an optimised one; what is said
# counts, and a project that has weft as a folder decides for itself.
#
# SPDX-License-Identifier: Apache-2.0
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# check NAME EXPECTED SOURCE OPTION...: the build type that configuring ends with.
check() {
    local name=$1 expected=$2 found
    if ! cmake -S "$3" -B "$scratch/$name" "-DCMAKE_CXX_COMPILER=$CXX" "${@:4}" \
        >"$scratch/log" 2>&1; then
        cat "$scratch/log"
        exit 1
    fi
    found=$(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$scratch/$name/CMakeCache.txt")
    if [[ $found != "$expected" ]]; then
        echo "$name: the build type is '$found', and not '$expected'"
        exit 1
    fi
    said=no
    if grep -q 'no CMAKE_BUILD_TYPE was given' "$scratch/log"; then said=yes; fi
}

# Whatever the environment says of it.
unset CMAKE_BUILD_TYPE
check nothing RelWithDebInfo "$SOURCE_DIR"
if [[ $said == no ]]; then echo "nothing was said of it"; exit 1; fi
check again RelWithDebInfo "$SOURCE_DIR" -DCMAKE_BUILD_TYPE=
for given in Debug None Release; do
    check "$given" "$given" "$SOURCE_DIR" "-DCMAKE_BUILD_TYPE=$given"
    if [[ $said == yes ]]; then echo "$given was given"; exit 1; fi
done
check folder "" "$SOURCE_DIR/tests/install/add_subdirectory" "-DWEFT_SOURCE_DIR=$SOURCE_DIR"
if [[ $said == no ]]; then echo "the project with weft as a folder was told nothing"; exit 1; fi
echo "right"
