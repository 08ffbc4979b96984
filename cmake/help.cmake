# help.cmake - gives a program `--help`: the comment that its source opens with.
#
# weft_help(TARGET SOURCE) adds a generated file to TARGET. Before main() it looks whether --help or
# -h is among the arguments, prints the comment and ends. So every example and every program of
# bench/ has it, and none has code for it. As a script (cmake -P) it writes that file.
#
# SPDX-License-Identifier: Apache-2.0

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${SOURCE} text)
  string(REGEX MATCH "^(//[^\n]*\n)+" text "${text}")
  string(REGEX REPLACE "(^|\n)// ?" "\\1" text "${text}")
  string(REGEX REPLACE "\n*SPDX-License-Identifier[^\n]*" "" text "${text}")
  string(STRIP "${text}" text)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/help.cpp.in ${OUTPUT} @ONLY)
  file(TOUCH ${OUTPUT})
  return()
endif()

set(WEFT_HELP_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(weft_help target source)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/help/${target}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DOUTPUT=${output} -P ${WEFT_HELP_SCRIPT}
    DEPENDS ${source} ${WEFT_HELP_SCRIPT} ${PROJECT_SOURCE_DIR}/cmake/help.cpp.in
    COMMENT "Generating help/${target}.cpp" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
