# Installs the build to a fresh prefix and uses it from an outside project, from a bare compiler line and as a subproject.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "failed: ${line}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# -O0: what is tested is that everything is found, not speed.
set(settings -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_EXTENSIONS=OFF)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${WORK}/outside ${settings} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DVT_PROTOTYPE=${SOURCE}/examples/header_only.cpp)
run(${CMAKE_COMMAND} --build ${WORK}/outside)
run(${WORK}/outside/app)
run(${WORK}/outside/proto)

# As a subproject: configuring shows that the targets exist and nothing else is built; the library itself was built above.
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${WORK}/nested ${settings} -DVT_AS_SUBPROJECT=${SOURCE})

file(STRINGS ${BUILD}/CMakeCache.txt header_dirs REGEX "^VT_(LLVM|EIGEN|FMT)_INCLUDE_DIR:")
set(includes)
foreach(line IN LISTS header_dirs)
  string(REGEX REPLACE "^[^=]*=" "" dir "${line}")
  if(NOT dir STREQUAL "/usr/include")
    list(APPEND includes -isystem ${dir})
  endif()
endforeach()
# The line of the README, without the half minute of making the same code once more: with these flags the compiler finds all headers, whose text it
# took above with the same -std; and the object made there links with those.
run(${CXX} -std=c++20 -E -o ${WORK}/text.ii -I ${WORK}/prefix/include ${includes} ${SOURCE}/examples/header_only.cpp)
file(GLOB_RECURSE object ${WORK}/outside/CMakeFiles/proto.dir/*header_only.cpp.o)
run(${CXX} ${object} -o ${WORK}/bare -ldl -pthread)
run(${WORK}/bare)

# What a prototype waits for is nearly proportional to the functions of its one unit (at -O0 here).
find_program(nm nm)
if(nm)
  execute_process(COMMAND ${nm} --defined-only ${object} OUTPUT_VARIABLE symbols)
  string(REGEX MATCHALL " [tTwW] " functions "${symbols}")
  list(LENGTH functions functions)
  message(STATUS "the prototype's one unit has ${functions} functions")
endif()

# Without VT_CUDA a prototype leaves the sources for CUDA out, and says so when it is sent to a device.
execute_process(COMMAND ${CMAKE_COMMAND} -E env VT_BACKEND=cuda ${WORK}/bare RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "define VT_CUDA")
  message(FATAL_ERROR "a prototype without VT_CUDA should refuse VT_BACKEND=cuda; status ${status}: ${output}")
endif()
