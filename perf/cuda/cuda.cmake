# The benchmarks of CUDA devices need only vt: the tests run them too, on the emulated driver.
if(NOT TARGET bench_cuda)
  add_executable(bench_cuda ${CMAKE_CURRENT_LIST_DIR}/cuda.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cuda_kernels.cpp ${CMAKE_CURRENT_LIST_DIR}/cuda_models.cpp)
  target_link_libraries(bench_cuda PRIVATE vt vt_warnings)
  target_include_directories(bench_cuda PRIVATE ${PROJECT_SOURCE_DIR})
endif()
