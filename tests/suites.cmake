# Which sources make which test programs. With VT_UNITY several suites are one source and one
# program: headers are read, and templates of the standard library and of vt instantiated, once for
# all of them, which is most of what a compiler does for a test. Each suite stays a file to call (a
# link to the program, whose name tells suite_main.cpp which suite is meant) and a name to build.

# A suite is a program of its own where it changes before main what others see, has objects that
# outlive main, or tells the preprocessor or namespaces things that do not hold within a namespace;
# and where it is compiled in another way.
set(vt_lone_suites "static_lifetime|visible_code|interop|random|matmul")
string(JOIN "|" vt_lone_lines "^#(define|undef)" "^namespace [a-z_:]+ {" "^extern" "^template <>"
       "^const .* = \\[\\] ?{" "= ::setenv\\("
       "^#include (<(mpfr|boost/|vt/eigen|Eigen/)|\"support/cuda_libraries)")
set(vt_bytes_together 100000)

# Sets vt_programs; vt_suites_of_PROGRAM, the files of its suites; vt_program_of_SUITE.
function(vt_group_suites files)
  set(vt_programs)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    file(STRINGS ${file} lone LIMIT_COUNT 1 REGEX "${vt_lone_lines}")
    file(STRINGS ${file} emulator LIMIT_COUNT 1
         REGEX "^#include \"support/(cuda_program|cuda_emulator|emulator_fixture).hpp\"")
    file(STRINGS ${file} threads LIMIT_COUNT 1 REGEX "${vt_lines_of_threads}")
    # What is linked with the one unit as well, and what alone runs under ThreadSanitizer, stays
    # among itself.
    set(kind plain)
    if(emulator MATCHES "fixture")
      set(kind cuda_emulator)
    elseif(emulator)
      set(kind cuda)  # chooses the driver before main
    elseif(name MATCHES "^(${vt_one_unit_suites})_test$")
      set(kind one_unit)
    endif()
    set(program ${name})
    if(VT_UNITY AND NOT lone AND NOT name MATCHES "^(${vt_lone_suites})_test$"
       AND NOT (VT_SANITIZE MATCHES "thread" AND NOT threads))
      file(SIZE ${file} bytes)
      math(EXPR sum "${sum_of_${kind}} + ${bytes}")
      if(NOT sum_of_${kind} OR sum GREATER vt_bytes_together)
        math(EXPR number_of_${kind} "0${number_of_${kind}} + 1")
        set(sum ${bytes})
      endif()
      set(sum_of_${kind} ${sum})
      set(program suites.${kind}_${number_of_${kind}})
    endif()
    list(APPEND vt_programs ${program})
    list(APPEND vt_suites_of_${program} ${file})
    set(vt_suites_of_${program} ${vt_suites_of_${program}} PARENT_SCOPE)
    set(vt_program_of_${name} ${program} PARENT_SCOPE)
  endforeach()
  list(REMOVE_DUPLICATES vt_programs)
  set(vt_programs ${vt_programs} PARENT_SCOPE)
endfunction()

# One source of several: all their headers, then each suite in a namespace of its own, where its
# #includes find nothing left to do.
function(vt_write_suites output files)
  set(headers)
  set(suites)
  foreach(file IN LISTS files)
    file(STRINGS ${file} includes
         REGEX "^#include.*[>p]\"?$|^#include [<\"][^.]*(\\.h|\\.hpp)?[>\"]")
    # A header next to the suite is named by its path from here.
    get_filename_component(folder ${file} DIRECTORY)
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"(.*)\"" "\\1" header "${line}")
      if(NOT header STREQUAL line AND EXISTS ${folder}/${header})
        set(line "#include \"${folder}/${header}\"")
      endif()
      list(APPEND headers "${line}")
    endforeach()
    get_filename_component(name ${file} NAME_WE)
    string(APPEND suites "namespace suite_${name} {\n#include \"${file}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES headers)
  list(JOIN headers "\n" headers)
  file(CONFIGURE OUTPUT ${output} CONTENT "${headers}\n\n${suites}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
endfunction()

# A program of a test's objects and a library, and the names that its suites are called by.
function(vt_add_suite_program prefix program library)
  add_executable(${prefix}${program} $<TARGET_OBJECTS:${program}_objects>)
  target_link_libraries(${prefix}${program} PRIVATE
                        vt_test_support ${library} vt_test_settings ${ARGN})
  if(NOT program MATCHES "^suites\\.")
    # A linker would write through the link that is left from when the suite was one of several.
    set(path ${CMAKE_CURRENT_BINARY_DIR}/${prefix}${program})
    if(IS_SYMLINK ${path})
      file(REMOVE ${path})
    endif()
    return()
  endif()
  target_sources(${prefix}${program} PRIVATE $<TARGET_OBJECTS:vt_suite_main>)
  foreach(file IN LISTS vt_suites_of_${program})
    get_filename_component(name ${file} NAME_WE)
    add_custom_target(${prefix}${name} DEPENDS ${prefix}${program})
    file(CREATE_LINK ${prefix}${program} ${CMAKE_CURRENT_BINARY_DIR}/${prefix}${name} SYMBOLIC)
  endforeach()
endfunction()
