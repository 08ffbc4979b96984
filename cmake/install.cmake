# install.cmake - cmake --install: the library, its headers, weftConfig.cmake and weft.pc.
#
# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(TARGETS weft EXPORT weftTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weft
  DESTINATION include FILES_MATCHING PATTERN "*.hpp")
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package_dir})

configure_package_config_file(cmake/weftConfig.cmake.in
  ${PROJECT_BINARY_DIR}/weftConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break what used the old one.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
  DESTINATION ${package_dir})

# weft.pc finds the prefix from where it lies, so that `cmake --install --prefix` may move it.
string(REGEX REPLACE "[^/]+" ".." pc_prefix ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
list(TRANSFORM WEFT_PUBLIC_DEFINITIONS PREPEND -D OUTPUT_VARIABLE pc_definitions)
list(JOIN pc_definitions " " pc_definitions)
list(JOIN WEFT_PUBLIC_OPTIONS " " pc_options)
# A shared library finds what it uses by itself.
set(pc_libraries "")
if(NOT BUILD_SHARED_LIBS)
  list(TRANSFORM WEFT_PRIVATE_LIBRARIES PREPEND -l OUTPUT_VARIABLE pc_libraries)
  list(JOIN pc_libraries " " pc_libraries)
endif()
configure_file(cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The licence, and the gdb commands.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libweft-dev
  RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/tools/weft-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
