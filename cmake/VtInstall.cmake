# What `cmake --install` writes: the headers, the sources beside them (for header-only use), the
# library, find_package(vt). Installed, the sources lie in include/vt/src, so one -I serves both
# ways; the list of sources is adapted to that place.
include(CMakePackageConfigHelpers)

set(vt_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vt)
install(TARGETS vt vt_header_only EXPORT vtTargets)
install(EXPORT vtTargets NAMESPACE vt:: DESTINATION ${vt_config_dir})
install(DIRECTORY include/vt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} PATTERN sources.hpp EXCLUDE)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vt/src)

file(READ include/vt/detail/sources.hpp vt_installed_list)
string(REPLACE "\"../../../src/" "\"../src/" vt_installed_list "${vt_installed_list}")
file(CONFIGURE OUTPUT installed/sources.hpp CONTENT "${vt_installed_list}" @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/installed/sources.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vt/detail)

configure_package_config_file(cmake/vtConfig.cmake.in vtConfig.cmake
  INSTALL_DESTINATION ${vt_config_dir})
write_basic_package_version_file(vtConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vtConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/vtConfigVersion.cmake cmake/VtDependencies.cmake
  DESTINATION ${vt_config_dir})
