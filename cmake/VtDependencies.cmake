# Finds the headers vt uses (none is linked; libLLVM is loaded at run time). Shared by vt's build
# and by its installed config. Sets VT_LLVM_INCLUDE_DIR, VT_EIGEN_INCLUDE_DIR, VT_FMT_INCLUDE_DIR
# (cache) and VT_HEADER_DIRS (those that are not default paths).

set(_vt_llvm_hints)
foreach(_vt_version 19 20 18)  # developed on 19; the others are supported
  list(APPEND _vt_llvm_hints /usr/lib/llvm-${_vt_version}/include /usr/include/llvm-c-${_vt_version}
       /usr/local/opt/llvm@${_vt_version}/include /opt/llvm-${_vt_version}/include)
endforeach()
if(NOT VT_LLVM_INCLUDE_DIR)
  find_program(VT_LLVM_CONFIG NAMES llvm-config-19 llvm-config-20 llvm-config-18)
  if(VT_LLVM_CONFIG)
    execute_process(COMMAND ${VT_LLVM_CONFIG} --includedir OUTPUT_VARIABLE _vt_llvm_config_dir
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND _vt_llvm_hints ${_vt_llvm_config_dir})
  endif()
endif()
find_path(VT_LLVM_INCLUDE_DIR llvm-c/LLJIT.h HINTS ${_vt_llvm_hints}
  DOC "Folder that holds llvm-c/ (LLVM 18 to 20)")
find_path(VT_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3 DOC "Folder that holds Eigen/")
find_path(VT_FMT_INCLUDE_DIR fmt/format.h DOC "Folder that holds fmt/")
mark_as_advanced(VT_LLVM_CONFIG VT_LLVM_INCLUDE_DIR VT_EIGEN_INCLUDE_DIR VT_FMT_INCLUDE_DIR)

set(VT_HEADER_DIRS)
foreach(_vt_dir VT_LLVM_INCLUDE_DIR VT_EIGEN_INCLUDE_DIR VT_FMT_INCLUDE_DIR)
  if(${_vt_dir})
    list(APPEND VT_HEADER_DIRS ${${_vt_dir}})
  endif()
endforeach()
list(REMOVE_DUPLICATES VT_HEADER_DIRS)
list(REMOVE_ITEM VT_HEADER_DIRS /usr/include)  # the default path must not be named again
