# Installs the build to a fresh prefix and uses it from an outside project, from a bare compiler
# line and as a subproject.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "failed: ${line}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# -O0: what is tested is that everything is found, not speed.
set(settings -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_EXTENSIONS=OFF)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${WORK}/outside ${settings}
    -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DVT_EXAMPLES=${SOURCE}/examples)
run(${CMAKE_COMMAND} --build ${WORK}/outside)
run(${WORK}/outside/app)
run(${WORK}/outside/proto)

# As a subproject: configuring shows that the targets exist and nothing else is built; the library
# itself was built above.
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${WORK}/nested ${settings}
  -DVT_AS_SUBPROJECT=${SOURCE})

file(STRINGS ${BUILD}/CMakeCache.txt header_dirs REGEX "^VT_(LLVM|EIGEN|FMT)_INCLUDE_DIR:")
set(includes)
foreach(line IN LISTS header_dirs)
  string(REGEX REPLACE "^[^=]*=" "" dir "${line}")
  if(NOT dir STREQUAL "/usr/include")
    list(APPEND includes -isystem ${dir})
  endif()
endforeach()
# The two lines of the README. The first is only preprocessed, which shows that with these flags the
# compiler finds all headers: the implementation was compiled above from the same text, and that
# object is linked here.
set(bare ${CXX} -std=c++20 -I ${WORK}/prefix/include ${includes})
run(${bare} -E -o ${WORK}/text.ii ${SOURCE}/examples/vt.cpp)
file(GLOB_RECURSE object ${WORK}/outside/CMakeFiles/proto.dir/*/vt.cpp.o)
run(${bare} ${SOURCE}/examples/prototype.cpp ${object} -o ${WORK}/bare -ldl -pthread)
run(${WORK}/bare)

# What a prototype waits for is nearly proportional to the functions of its one unit (at -O0 here).
find_program(nm nm)
if(nm)
  execute_process(COMMAND ${nm} --defined-only ${object} OUTPUT_VARIABLE symbols)
  string(REGEX MATCHALL " [tTwW] " functions "${symbols}")
  list(LENGTH functions functions)
  message(STATUS "the prototype's one unit has ${functions} functions")
endif()

# Without VT_CUDA a prototype leaves out the sources for CUDA, and says so when sent to a device.
execute_process(COMMAND ${CMAKE_COMMAND} -E env VT_BACKEND=cuda ${WORK}/bare RESULT_VARIABLE status
  OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "vt::default_device.*VT_BACKEND=cuda.*define VT_CUDA")
  message(FATAL_ERROR
    "a prototype without VT_CUDA should refuse VT_BACKEND=cuda; status ${status}: ${output}")
endif()
