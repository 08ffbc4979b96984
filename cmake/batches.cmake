# batches.cmake - compiles the files of a test program some at a time.
#
# weft_batches(RESULT NAME SOURCE...) sets RESULT to files that include the sources, WEFT_TEST_BATCH
# of them each at most. Each source is in a namespace of its own, behind what all of them include
# (each header once, so not again in there): they share what the compiler makes of the headers, and
# no names. A source that cannot be in a namespace, or defines macros, is compiled alone. As a
# script (cmake -P) this writes such a file.
#
# SPDX-License-Identifier: Apache-2.0

if(CMAKE_SCRIPT_MODE_FILE)
  set(includes "")
  set(bodies "")
  foreach(source IN LISTS SOURCES)
    file(STRINGS ${source} lines REGEX "^#include ")
    list(APPEND includes ${lines})
    cmake_path(GET source STEM name)
    string(APPEND bodies "namespace in_${name} {\n#include \"${source}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(WRITE ${OUTPUT} "${includes}\n\n${bodies}")
  return()
endif()

set(WEFT_BATCHES_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(weft_batches result name)
  set(alone "")
  set(together "")
  set(own "#define|template <>|extern \"C\"|namespace [a-z]|[a-z* ]+operator (new|delete)")
  foreach(source IN LISTS ARGN)
    file(READ ${source} text)
    if(text MATCHES "\n(${own})")
      list(APPEND alone ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()
  # As many batches as needed, all about as long.
  list(LENGTH together count)
  math(EXPR batches "(${count} + ${WEFT_TEST_BATCH} - 1) / ${WEFT_TEST_BATCH}")
  set(outputs "")
  set(begin 0)
  foreach(i RANGE 1 ${batches})
    math(EXPR end "${count} * ${i} / ${batches}")
    math(EXPR length "${end} - ${begin}")
    list(SUBLIST together ${begin} ${length} batch)
    set(begin ${end})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/batches/${name}_${i}.cpp)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} "-DSOURCES=${batch}" -DOUTPUT=${output} -P ${WEFT_BATCHES_SCRIPT}
      DEPENDS ${batch} ${WEFT_BATCHES_SCRIPT}
      COMMENT "Generating batches/${name}_${i}.cpp" VERBATIM)
    list(APPEND outputs ${output})
  endforeach()
  set(${result} ${alone} ${outputs} PARENT_SCOPE)
endfunction()
