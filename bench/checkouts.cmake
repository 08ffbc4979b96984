# checkouts.cmake - peers of the case ring that no package has, from checkouts that a user names.
#
# They are tried when the build is configured, and left out, with a word, if they do not build.
# Sets `checkouts` to the programs of cases/ring that can be built (checkouts is usched's),
# `cppcoro_folders` to what cppcoro is included from, and `cppcoro_version`.
#
# SPDX-License-Identifier: Apache-2.0
set(USCHED_DIR "" CACHE PATH "A checkout of usched, for the case ring")
set(CPPCORO_DIR "" CACHE PATH "A checkout of cppcoro, for the case ring")
set(checkouts "")
set(cppcoro_folders "")

# weft_checkout_version(NAME FOLDER OUTPUT): which state of the checkout it is, as far as git knows.
function(weft_checkout_version name folder output)
  set(${output} ${name} PARENT_SCOPE)
  execute_process(COMMAND git -C ${folder} describe --always --tags --dirty=+
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(${output} "${name} ${said}" PARENT_SCOPE)
  endif()
endfunction()

# usched's own ring is a program in C, made as its Makefile makes it: the stack that is copied must
# not be optimised; and a second time for rings on one thread, which then take no locks
# (SINGLE_THREAD, which older versions do not know). Some use uint64_t without a header that has it.
if(USCHED_DIR)
  find_program(WEFT_BENCH_CC NAMES gcc cc)
  mark_as_advanced(WEFT_BENCH_CC)
  set(folder ${PROJECT_BINARY_DIR}/bench/ring)
  file(MAKE_DIRECTORY ${folder})
  file(REMOVE ${folder}/usched_rmain ${folder}/usched_rmain_1)
  set(failed TRUE)
  set(said "there is no usched.c")
  if(EXISTS ${USCHED_DIR}/usched.c)
    execute_process(
      COMMAND ${WEFT_BENCH_CC} -fno-stack-protector -c usched.c -o ${folder}/usched.o
      WORKING_DIRECTORY ${USCHED_DIR}
      RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
  endif()
  foreach(one "usched_rmain" "usched_rmain_1;-DSINGLE_THREAD")
    list(POP_FRONT one program)
    if(NOT failed)
      execute_process(
        COMMAND ${WEFT_BENCH_CC} -O3 -fno-stack-protector -include stdint.h ${one}
                rr.c ${folder}/usched.o rmain.c -pthread -o ${folder}/${program}
        WORKING_DIRECTORY ${USCHED_DIR}
        RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
    endif()
  endforeach()
  if(failed)
    message(NOTICE "bench: ring/checkouts is left out: no usched builds in ${USCHED_DIR}\n${said}")
  else()
    list(APPEND checkouts checkouts)
    weft_checkout_version(usched ${USCHED_DIR} version)
    file(WRITE ${folder}/usched_version "${version}\n")
  endif()
endif()

# Of cppcoro a header is enough. Older ones, its author's among them, include
# <experimental/coroutine>, which no compiler has any more: support/coroutine_ts stands in for it.
if(CPPCORO_DIR)
  set(cppcoro_folders ${CPPCORO_DIR}/include ${CMAKE_CURRENT_LIST_DIR}/support/coroutine_ts)
  set(folders ${cppcoro_folders} ${CMAKE_CURRENT_LIST_DIR})
  set(header include/cppcoro/single_consumer_async_auto_reset_event.hpp)
  if(EXISTS ${CPPCORO_DIR}/${header})
    try_compile(cppcoro_builds ${PROJECT_BINARY_DIR}/bench/cppcoro
      ${CMAKE_CURRENT_LIST_DIR}/cases/ring/cppcoro.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${folders}"
      CXX_STANDARD 23 CXX_STANDARD_REQUIRED ON OUTPUT_VARIABLE said
      COPY_FILE ${PROJECT_BINARY_DIR}/bench/cppcoro_tried)
  else()
    set(cppcoro_builds FALSE)
    set(said "there is no ${header}")
  endif()
  if(cppcoro_builds)
    list(APPEND checkouts cppcoro)
    weft_checkout_version(cppcoro ${CPPCORO_DIR} cppcoro_version)
  else()
    message(NOTICE
      "bench: ring/cppcoro is left out: no header that compiles in ${CPPCORO_DIR}\n${said}")
  endif()
endif()
