# What `cmake --install` puts where, and how other projects find it there.

include(CMakePackageConfigHelpers)

install(
  TARGETS raffia
  EXPORT raffiaTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/raffia DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(TARGET raffia_cli)
  # The command finds the library beside which it was installed, wherever that is.
  file(RELATIVE_PATH library_from_command "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(raffia_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_command}")
  install(TARGETS raffia_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# find_package(raffia)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/raffia)
install(
  EXPORT raffiaTargets
  NAMESPACE raffia::
  DESTINATION ${package_dir})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/raffiaConfig.cmake.in ${PROJECT_BINARY_DIR}/raffiaConfig.cmake
  INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/raffiaConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/raffiaConfig.cmake ${PROJECT_BINARY_DIR}/raffiaConfigVersion.cmake
        DESTINATION ${package_dir})

# pkg-config raffia: the prefix is told from where the file lies, so that a moved tree still works.
file(RELATIVE_PATH prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/raffia.pc.in ${PROJECT_BINARY_DIR}/raffia.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/raffia.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(page README.md CHANGELOG.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${page})
    install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR})
  endif()
endforeach()
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/docs/
  DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING
  PATTERN "*.md"
  PATTERN "api" EXCLUDE
  PATTERN "index.md" EXCLUDE)
