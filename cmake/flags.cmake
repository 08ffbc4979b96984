# flags.cmake - the compiler flags: what users of weft get, and what only our own code gets.
#
# SPDX-License-Identifier: Apache-2.0

# The architecture whose switch is built; on any other there is only the portable one.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(WEFT_ARCHITECTURE x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(WEFT_ARCHITECTURE aarch64)
else()
  set(WEFT_ARCHITECTURE other)
  set(WEFT_PORTABLE_SWITCH ON)
endif()

# What code that includes a header of weft must agree with the library on; weft.pc says the same.
set(WEFT_PUBLIC_DEFINITIONS "")
set(WEFT_PUBLIC_OPTIONS "")
if(WEFT_PORTABLE_SWITCH)
  list(APPEND WEFT_PUBLIC_DEFINITIONS WEFT_PORTABLE_SWITCH=1)
endif()
if(WEFT_CHECKS)
  list(APPEND WEFT_PUBLIC_DEFINITIONS WEFT_CHECKS=1)
endif()
if(WEFT_SANITIZE)
  list(APPEND WEFT_PUBLIC_OPTIONS -fsanitize=${WEFT_SANITIZE})
endif()

# weft_usage(TARGET): gives TARGET, and whoever links it, what weft's headers need.
function(weft_usage target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_compile_definitions(${target} PUBLIC ${WEFT_PUBLIC_DEFINITIONS})
  target_compile_options(${target} PUBLIC ${WEFT_PUBLIC_OPTIONS})
  target_link_options(${target} PUBLIC ${WEFT_PUBLIC_OPTIONS})
  target_link_libraries(${target} PUBLIC Threads::Threads)
endfunction()

# The presets want warnings to be errors. A newer compiler than those that the tests are run with
# warns of more, which is no reason why somebody's first `make run` should stop.
set(werror ${WEFT_WERROR})
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
       AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 20))
  set(werror OFF)
endif()

# weft_flags: for the library, its tests, examples and benchmarks; never for users. Programs of
# peers (the property WEFT_PEER) include what others wrote, and their warnings stop nobody.
set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_library(weft_flags INTERFACE)
target_compile_options(weft_flags INTERFACE
  -Wall -Wextra -Wconversion -Wsign-conversion
  $<$<AND:$<BOOL:${werror}>,$<NOT:$<BOOL:$<TARGET_PROPERTY:WEFT_PEER>>>>:-Werror>
  -fstack-clash-protection -fstack-protector-strong
  $<$<STREQUAL:${WEFT_ARCHITECTURE},x86_64>:-fcf-protection=branch>
  $<$<STREQUAL:${WEFT_ARCHITECTURE},aarch64>:-mbranch-protection=standard>)
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fno-sanitize-recover=all -fno-omit-frame-pointer)
else()
  target_compile_options(weft_flags INTERFACE
    $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=2>)
endif()
target_compile_definitions(weft_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

separate_arguments(extra_flags UNIX_COMMAND "${WEFT_EXTRA_FLAGS}")
target_compile_options(weft_flags INTERFACE ${extra_flags})
target_link_options(weft_flags INTERFACE ${extra_flags})
