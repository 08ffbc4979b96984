# parts.cmake - weft_part(): one part of the library.
#
# SPDX-License-Identifier: Apache-2.0

# Half of what it takes to compile a file of the library at -O0 is the standard library's headers.
# Who builds the tests, too, has them compiled once, or who asks for it. A file that forgets to
# include one is found by the build without, which is release. Not for g++ -O2, which then
# warns of what it finds in them (array bounds in std::string); another machine's has that off.
if(NOT DEFINED WEFT_COMPILED_HEADERS)
  set(WEFT_COMPILED_HEADERS OFF)
endif()
if(WEFT_TESTS AND (CMAKE_BUILD_TYPE STREQUAL "Debug" OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
                   OR CMAKE_CROSSCOMPILING))
  set(WEFT_COMPILED_HEADERS ON)
endif()
if(CMAKE_CROSSCOMPILING)
  target_compile_options(weft_flags INTERFACE
    -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow)
endif()
set(WEFT_STANDARD_HEADERS
  <algorithm> <atomic> <chrono> <condition_variable> <exception> <expected> <functional> <memory>
  <mutex> <optional> <stop_token> <string> <system_error> <thread> <vector>)

# weft_program(TARGET KIND): the same for small programs, once for those of a KIND, which have the
# same flags; weft's own with them, for examples include all of it. Who compiles each file of the
# tests alone does without, so he finds what one forgets; so does release.
function(weft_program target kind)
  if(NOT WEFT_COMPILED_HEADERS OR WEFT_TEST_BATCH EQUAL 1)
    return()
  endif()
  get_property(first GLOBAL PROPERTY weft_first_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set(headers ${WEFT_STANDARD_HEADERS})
    if(NOT kind STREQUAL "program")
      list(APPEND headers <weft/weft.hpp>)
    endif()
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY weft_first_${kind} ${target})
  endif()
endfunction()

# weft_part(NAME [DEPENDS PART...]): the target weft_NAME from src/NAME, which may use the parts
# named (as layers.txt says; tools/check_layers.py compares). A part with no source yet, or with
# headers only, is an interface target.
function(weft_part name)
  # Half of the library lies above fiber: who tests a switch has no need of it.
  if(WEFT_LAST_PART IN_LIST WEFT_PARTS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" DEPENDS)
  list(TRANSFORM arg_DEPENDS PREPEND weft_)

  file(GLOB sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp ${PROJECT_SOURCE_DIR}/src/${name}/*.S)
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  # One file an architecture: x86_64.S, switch_aarch64.cpp. Only ours is built, or none.
  foreach(architecture x86_64 aarch64)
    if(WEFT_PORTABLE_SWITCH OR NOT architecture STREQUAL WEFT_ARCHITECTURE)
      list(FILTER sources EXCLUDE REGEX "[/_]${architecture}\\.(cpp|S)$")
    endif()
  endforeach()

  if(sources)
    add_library(weft_${name} OBJECT ${sources})
    weft_usage(weft_${name})
    target_link_libraries(weft_${name} PUBLIC ${arg_DEPENDS} PRIVATE weft_flags)
    target_include_directories(weft_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    set_target_properties(weft_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(WEFT_COMPILED_HEADERS AND name STREQUAL "base")
      target_precompile_headers(weft_base PRIVATE ${WEFT_STANDARD_HEADERS})
    elseif(WEFT_COMPILED_HEADERS)
      target_precompile_headers(weft_${name} REUSE_FROM weft_base)
    endif()
    set(WEFT_PART_OBJECTS ${WEFT_PART_OBJECTS} $<TARGET_OBJECTS:weft_${name}> PARENT_SCOPE)
  else()
    add_library(weft_${name} INTERFACE)
    target_link_libraries(weft_${name} INTERFACE ${arg_DEPENDS})
  endif()
  set(WEFT_PARTS ${WEFT_PARTS} ${name} PARENT_SCOPE)
endfunction()
