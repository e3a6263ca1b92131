# The suite distributed: one program for each MPI whose compiler is there.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mprefer-vector-width=512 VT_HAS_VECTOR_WIDTH)
foreach(family openmpi mpich)
  find_program(VT_MPICXX_${family} mpicxx.${family})
  mark_as_advanced(VT_MPICXX_${family})
  if(NOT VT_MPICXX_${family})
    continue()
  endif()
  execute_process(COMMAND ${VT_MPICXX_${family}} -show OUTPUT_VARIABLE flags
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags)
  set(compiled ${flags})
  list(FILTER compiled INCLUDE REGEX "^-I")
  list(TRANSFORM compiled REPLACE "^-I" "")
  list(FILTER flags INCLUDE REGEX "^-[Ll]")
  # What vt is compared with is compiled for this machine, and with its widest vectors.
  add_library(raw_${family} STATIC EXCLUDE_FROM_ALL peers/distributed/raw.cpp)
  target_compile_features(raw_${family} PRIVATE cxx_std_20)
  target_compile_options(raw_${family} PRIVATE -O3 -march=native
    $<$<BOOL:${VT_HAS_VECTOR_WIDTH}>:-mprefer-vector-width=512>)
  target_include_directories(raw_${family} SYSTEM PRIVATE ${compiled})
  target_link_libraries(raw_${family} PUBLIC ${flags})
  add_executable(bench_distributed_${family} EXCLUDE_FROM_ALL distributed/main.cpp
    distributed/collectives.cpp distributed/programs.cpp)
  target_link_libraries(bench_distributed_${family} PRIVATE vt vt_warnings raw_${family})
  target_compile_definitions(bench_distributed_${family} PRIVATE VT_MPI_FAMILY="${family}"
    VT_EXAMPLE_DATA="${PROJECT_SOURCE_DIR}/examples/data")
  list(APPEND vt_distributed_programs bench_distributed_${family})
endforeach()
if(vt_distributed_programs)
  add_custom_target(bench_distributed DEPENDS ${vt_distributed_programs})
endif()
