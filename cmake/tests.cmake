# tests.cmake - how test and benchmark programs are made.
#
# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)
include(cmake/batches.cmake)

# GoogleTest: the installed one, or its Debian source built with our flags where the installed
# one will not do (another architecture, ThreadSanitizer).
if(CMAKE_CROSSCOMPILING OR WEFT_SANITIZE MATCHES "thread")
  set(googletest /usr/src/googletest/googletest)
  add_library(weft_gtest STATIC ${googletest}/src/gtest-all.cc)
  target_compile_features(weft_gtest PUBLIC cxx_std_23)
  target_include_directories(weft_gtest SYSTEM PUBLIC ${googletest}/include PRIVATE ${googletest})
  target_compile_options(weft_gtest PUBLIC ${WEFT_PUBLIC_OPTIONS} PRIVATE -O0 -g0)
  target_link_libraries(weft_gtest PUBLIC Threads::Threads)
  add_library(GTest::gtest ALIAS weft_gtest)
else()
  find_package(GTest REQUIRED)
endif()

# The little programs of tests/programs, which tests start as processes of their own. On another
# architecture they are started through the emulator: WEFT_TEST_EMULATOR, else empty.
set(WEFT_PROGRAM_DIR ${PROJECT_BINARY_DIR}/tests/programs)
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " WEFT_EMULATOR)

# Most of the time that the tests take is the compiler's, so it does for them only what they need.
# To find what failed, lines are enough: the variables cost g++ -O2 a third of its time; dev has
# them. With a sanitizer the library is optimised and clang's tests are not, which halves what they
# take to compile; g++ gains by -Og, where it is wrong about what is not initialised, which release
# looks for. Of UBSan's checks those that stand at every use of a pointer are for the library alone:
# what they find ASan stops at, too, but for types and alignment.
add_library(weft_test_flags INTERFACE)
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  target_compile_definitions(weft_test_flags INTERFACE WEFT_TEST_LTO=1)  # frames are others there
endif()
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(weft_test_flags INTERFACE -g1)
elseif(WEFT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weft_test_flags INTERFACE -O0)
elseif(WEFT_SANITIZE)
  target_compile_options(weft_test_flags INTERFACE -Og -Wno-maybe-uninitialized)
endif()
if(WEFT_SANITIZE MATCHES "undefined")
  target_compile_options(weft_test_flags INTERFACE
    -fno-sanitize=null,vptr,alignment,object-size,nonnull-attribute,returns-nonnull-attribute)
endif()
# UBSan's tables are pointers: a program of tests that lies anywhere has 300,000 of them to adjust
# whenever it starts, which is for each test.
if(WEFT_SANITIZE MATCHES "undefined")
  target_link_options(weft_test_flags INTERFACE -no-pie)
endif()

# What every test program has: main(), and the headers of most of them, compiled once.
add_library(weft_test_main STATIC
  ${PROJECT_SOURCE_DIR}/tests/support/main.cpp ${PROJECT_SOURCE_DIR}/tests/support/weft_test.cpp)
target_link_libraries(weft_test_main PRIVATE weft GTest::gtest weft_flags weft_test_flags)
if(WEFT_COMPILED_HEADERS)
  target_precompile_headers(weft_test_main PRIVATE
    <gtest/gtest.h> <chrono> <functional> <mutex> <sstream> <stop_token> <thread>)
endif()

# weft_test(NAME SOURCE...): the GoogleTest program NAME_test, one ctest line a test. Tests with
# "stress" in their name are labelled slow; their counts follow the environment's WEFT_STRESS.
function(weft_test name)
  set(target weft_${name}_test)
  set(sources ${ARGN})
  # Not the model's, which say what an atomic is before they include anything.
  if(WEFT_TEST_BATCH GREATER 1 AND NOT name STREQUAL "model")
    weft_batches(sources ${name} ${ARGN})
  endif()
  add_executable(${target} ${sources})
  if(WEFT_COMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM weft_test_main)
  endif()
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/support ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE
    WEFT_TEST_PROGRAM_DIR="${WEFT_PROGRAM_DIR}" WEFT_TEST_EMULATOR="${WEFT_EMULATOR}")
  target_link_libraries(${target} PRIVATE
    weft_test_main weft GTest::gtest weft_flags weft_test_flags)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}_test RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    ENABLE_EXPORTS ON)
  set(how TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  gtest_discover_tests(${target} ${how} TEST_FILTER "-*stress*:*Stress*")
  gtest_discover_tests(${target} ${how} TEST_FILTER "*stress*:*Stress*" PROPERTIES LABELS slow)
endfunction()

foreach(part IN LISTS WEFT_PARTS)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${part}/*_test.cpp)
  if(sources)
    weft_test(${part} ${sources})
  endif()
endforeach()

# The tests of io once more, with the other reactor.
if(TARGET weft_io_test AND WEFT_PRIVATE_LIBRARIES MATCHES uring)
  target_compile_definitions(weft_io_test PRIVATE WEFT_TEST_IO_URING=1)
  gtest_discover_tests(weft_io_test TEST_PREFIX io_uring. DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 TEST_FILTER "-*stress*:address.*"
    PROPERTIES ENVIRONMENT WEFT_REACTOR=io_uring)
  gtest_discover_tests(weft_io_test TEST_PREFIX io_uring. DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 TEST_FILTER "*stress*"
    PROPERTIES LABELS slow ENVIRONMENT WEFT_REACTOR=io_uring)
endif()

# Benchmarks: X_bench.cpp is a program bench/PART_X_bench. Only optimised builds have them.
if(NOT WEFT_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  find_package(benchmark QUIET)
endif()
if(benchmark_FOUND)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*/*_bench.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME part)
    set(target ${part}_${name})
    add_executable(${target} ${source})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE
      weft benchmark::benchmark benchmark::benchmark_main weft_flags)
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  endforeach()
endif()
