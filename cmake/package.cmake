# package.cmake - cpack: a Debian package with the library, its headers and what finds them.
#
#   cpack -G DEB -B FOLDER        in a build folder; `make package` does it with the release preset
#
# SPDX-License-Identifier: Apache-2.0
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_VENDOR "the weft authors")
set(CPACK_PACKAGE_CONTACT "the weft authors <weft@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fibers for C++: plain blocking code that does not block")
set(CPACK_PACKAGE_DESCRIPTION
  "weft runs functions with stacks of their own over one thread or many: schedulers, the
standard library's locks and futures for them, channels, task groups, deadlines and
cancellation, actors, sockets and files.

This package has the library, its headers, and the files for CMake and pkg-config.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES OFF)

set(CPACK_DEBIAN_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config, gdb")
# A program that uses it is linked against libstdc++, so there is nothing more to find out for a
# static library; a shared one says what it needs.
if(BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libstdc++-12-dev | libstdc++-dev")
  # What it uses itself, a program that is linked with it must find.
  set(package_of_uring liburing-dev)
  set(package_of_cares libc-ares-dev)
  foreach(library IN LISTS WEFT_PRIVATE_LIBRARIES)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", ${package_of_${library}}")
  endforeach()
endif()

# A package of Debian's has a changelog in a form of its own, compressed; SOURCE_DATE_EPOCH sets its
# date.
set(debian_doc ${PROJECT_BINARY_DIR}/debian)
string(TIMESTAMP packaged "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${debian_doc}.changelog
  "libweft-dev (${PROJECT_VERSION}) unstable; urgency=medium\n\n"
  "  * Version ${PROJECT_VERSION}; what it has is in CHANGELOG.md of its sources.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${packaged}\n")
file(MAKE_DIRECTORY ${debian_doc})
file(ARCHIVE_CREATE OUTPUT ${debian_doc}/changelog.gz PATHS ${debian_doc}.changelog
  FORMAT raw COMPRESSION GZip)
set(CPACK_INSTALLED_DIRECTORIES
  ${debian_doc} ${CPACK_PACKAGING_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/libweft-dev)
include(CPack)
