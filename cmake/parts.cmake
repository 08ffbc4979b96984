# parts.cmake - weft_part(): one part of the library.
#
# SPDX-License-Identifier: Apache-2.0

# weft_part(NAME [DEPENDS PART...]): the target weft_NAME from src/NAME, which may use the parts
# named (as layers.txt says; tools/check_layers.py compares). A part with no source yet, or with
# headers only, is an interface target.
function(weft_part name)
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
    set(WEFT_PART_OBJECTS ${WEFT_PART_OBJECTS} $<TARGET_OBJECTS:weft_${name}> PARENT_SCOPE)
  else()
    add_library(weft_${name} INTERFACE)
    target_link_libraries(weft_${name} INTERFACE ${arg_DEPENDS})
  endif()
  set(WEFT_PARTS ${WEFT_PARTS} ${name} PARENT_SCOPE)
endfunction()
