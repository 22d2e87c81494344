# The only ways to add a target: each gets the house's compiler settings.

# In each of them PCH names a kind of precompiled header (AtollPch.cmake); UNITY says how many files make a batch.

# Batches of files that are compiled as one: most of the time goes into reading headers and into inline functions of
# theirs, which a batch pays once. UNITY gives the number of files; 0 keeps a target out. Files of a batch see each other's
# names: a test file with a helper that another test file also has is in ALONE, and not in a batch.
function(_atoll_unity target batch)
  if(NOT ATOLL_UNITY OR batch STREQUAL "0")
    return()
  endif()
  if(NOT batch)
    set(batch 14)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()

function(_atoll_pch target kind default)
  if(NOT kind)
    set(kind ${default})
  endif()
  atoll_use_pch(${target} ${kind})
endfunction()

# atoll_library(NAME common SRCS a.cc ... DEPS ... PRIVATE_DEPS ... [PCH base]): target atoll_common, alias atoll::common.
# PLANTED are further sources, those with planted defects (common/planted_defect.h). Their objects are the target
# atoll_common_planted, and no other source shares a batch with them. So tests/simulate compiles only them a second time.
function(atoll_library)
  cmake_parse_arguments(A "" "NAME;PCH;UNITY" "SRCS;PLANTED;DEPS;PRIVATE_DEPS" ${ARGN})
  if(A_SRCS)
    add_library(atoll_${A_NAME} STATIC ${A_SRCS})
    _atoll_pch(atoll_${A_NAME} "${A_PCH}" base)
    _atoll_unity(atoll_${A_NAME} "${A_UNITY}")
    set(scope PUBLIC)
    target_link_libraries(atoll_${A_NAME} PRIVATE atoll_compiler ${A_PRIVATE_DEPS})
    if(A_PLANTED)
      add_library(atoll_${A_NAME}_planted OBJECT ${A_PLANTED})
      _atoll_pch(atoll_${A_NAME}_planted "${A_PCH}" base)
      _atoll_unity(atoll_${A_NAME}_planted "${A_UNITY}")
      target_link_libraries(atoll_${A_NAME}_planted PRIVATE atoll_compiler ${A_DEPS} ${A_PRIVATE_DEPS})
      target_include_directories(atoll_${A_NAME}_planted PRIVATE ${PROJECT_SOURCE_DIR})
      target_sources(atoll_${A_NAME} PRIVATE $<TARGET_OBJECTS:atoll_${A_NAME}_planted>)
    endif()
  else()
    add_library(atoll_${A_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(atoll::${A_NAME} ALIAS atoll_${A_NAME})
  target_include_directories(atoll_${A_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(atoll_${A_NAME} ${scope} ${A_DEPS})
endfunction()

# atoll_binary(NAME atollctl SRCS ... DEPS ... [PCH cli]): a program in bin/.
function(atoll_binary)
  cmake_parse_arguments(A "" "NAME;PCH;UNITY" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  _atoll_pch(${A_NAME} "${A_PCH}" cli)
  _atoll_unity(${A_NAME} "${A_UNITY}")
  target_link_libraries(${A_NAME} PRIVATE atoll_compiler ${A_DEPS})
endfunction()

# atoll_c_library(NAME atoll_client VERSION 1 SRCS ... DEPS ... EXPORTS exports.map): a shared library in lib/ with a C
# interface. It carries its C++ runtime and hides everything but the exports, so that one binary serves every compiler and
# interpreter. No precompiled header: those have Abseil.
function(atoll_c_library)
  cmake_parse_arguments(A "" "NAME;VERSION;EXPORTS" "SRCS;DEPS" ${ARGN})
  add_library(${A_NAME} SHARED ${A_SRCS})
  add_library(atoll::${A_NAME} ALIAS ${A_NAME})
  set_target_properties(${A_NAME} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${A_VERSION} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${A_EXPORTS})
  target_include_directories(${A_NAME}
    PRIVATE ${PROJECT_SOURCE_DIR}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/client/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${A_NAME} PRIVATE atoll_compiler ${A_DEPS})
  # A sanitizer's runtime belongs to the program.
  if(NOT ATOLL_SANITIZE)
    target_link_options(${A_NAME} PRIVATE -static-libstdc++ -static-libgcc -Wl,-z,defs)
  endif()
  target_link_options(${A_NAME} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${A_EXPORTS} -Wl,--exclude-libs,ALL -Wl,--as-needed
    # Parts of the C++ runtime that nobody calls would ask for functions of a newer C library. mold drops the parts and keeps
    # what they ask for.
    -Wl,--gc-sections $<$<CXX_COMPILER_ID:GNU>:-fuse-ld=bfd>)
endfunction()

# atoll_c_caller(NAME quadratic_loop SRCS a.c ...): a test's program that calls the C library, in tests/. Strictly C99, as the
# library's header is.
function(atoll_c_caller)
  cmake_parse_arguments(A "" "NAME" "SRCS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS} ${PROJECT_SOURCE_DIR}/tests/client/library/caller_program.c)
  set_target_properties(${A_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests C_STANDARD 99 C_EXTENSIONS OFF C_STANDARD_REQUIRED ON)
  target_compile_options(${A_NAME} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_include_directories(${A_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE atoll::atoll_client)
endfunction()

# Labels, time limit and environment of a ctest entry. Every test also carries its folder as a label: `ctest -L server`.
# Label `slow` keeps a test out of scripts/test.sh unless --ci or --full is given, label `long` unless --full is.
# PROCESSORS counts half processors, and scripts/test.sh passes twice the number of processors to `ctest -j`: one test that
# computes takes 2, a test that waits for most of its time takes 1. Label `timed` is for a test that measures time and so runs
# alone: CI compiles beside the others. What a test takes is measured, in tests/test_costs.txt.
# The target unit_tests builds what the unit tests need that scripts/test.sh --full runs under AddressSanitizer, with the labels
# there: their programs (the further arguments), and none of what only the other tests need. The target memory_tests builds the
# part of it that CI runs.
# By this file's place: other projects include it too (tests/arm64).
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../tests/test_costs.txt ATOLL_TEST_COSTS REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../tests/test_costs.txt)

# ctest starts the tests with the highest COST first: a long one that starts last runs alone. No test takes three of the four half
# processors of two: those of two would go first, and it would run alone at the end.
function(_atoll_set_cost name)
  set(seconds 1)
  set(processors 2)
  foreach(line ${ATOLL_TEST_COSTS})
    if(line MATCHES "^${name} ([0-9]+) ([0-9]+)$")
      set(seconds ${CMAKE_MATCH_1})
      math(EXPR percent "100 * ${CMAKE_MATCH_2} / ${seconds}")
      if(percent LESS_EQUAL 45)
        set(processors 1)
      endif()
    endif()
  endforeach()
  set_tests_properties(${name} PROPERTIES COST ${seconds} PROCESSORS ${processors})
endfunction()

function(_atoll_register_test name timeout labels)
  if(NOT labels)
    set(labels unit)
  endif()
  if(NOT timeout)
    set(timeout 120)
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  list(APPEND labels ${folder})
  list(REMOVE_DUPLICATES labels)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
  _atoll_set_cost(${name})
  set(other_labels ${labels})
  list(FILTER other_labels INCLUDE REGEX "^(long|style|integration|browser|script)$")
  if("timed" IN_LIST labels)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if("unit" IN_LIST labels AND NOT other_labels)
    set(targets unit_tests)
    set(full_labels ${labels})
    list(FILTER full_labels INCLUDE REGEX "^(server|cli|launch|grpc)$")
    if(NOT full_labels)
      list(APPEND targets memory_tests)
    endif()
    foreach(target ${targets})
      if(NOT TARGET ${target})
        add_custom_target(${target})
      endif()
      foreach(program ${ARGN})
        # A program that is not part of this build (atoll-worker without LibTorch) is not waited for.
        if(TARGET ${program})
          add_dependencies(${target} ${program})
        endif()
      endforeach()
    endforeach()
  endif()
  if(ATOLL_SANITIZE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${ATOLL_SANITIZE_ENVIRONMENT})
  endif()
endfunction()

# atoll_test(NAME core_merge_test SRCS ... [ALONE ...] DEPS ... [LABELS unit] [TIMEOUT s] [PCH test]): a GoogleTest program, one
# ctest entry. ALONE are further sources, each compiled alone.
# "tests/paths.h" names the source tree and the folder of our programs.
# The target <folder>_tests builds all tests of a folder.
function(atoll_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT;PCH" "SRCS;ALONE;DEPS;LABELS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS} ${A_ALONE})
  _atoll_pch(${A_NAME} "${A_PCH}" test)
  _atoll_unity(${A_NAME} "")
  set_source_files_properties(${A_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${A_NAME} PRIVATE atoll_compiler ${A_DEPS} GTest::gmock GTest::gtest_main)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  if(NOT TARGET ${folder}_tests)
    add_custom_target(${folder}_tests)
  endif()
  add_dependencies(${folder}_tests ${A_NAME})
  add_test(NAME ${A_NAME} COMMAND ${A_NAME})
  _atoll_register_test(${A_NAME} "${A_TIMEOUT}" "${A_LABELS}" ${A_NAME})
endfunction()

# atoll_script_test(NAME style_includes COMMAND python3 x.py ... [PROGRAMS atollctl ...] [LABELS unit] [TIMEOUT s]): any other
# program as a test. PROGRAMS are the targets of ours that it runs. Exit code 77 means skipped: the machine lacks something
# that the test needs, and the output says what. A unit test without PROGRAMS runs nothing that a sanitizer could check: its
# label `script` keeps it out of the stages with sanitizers.
function(atoll_script_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "COMMAND;PROGRAMS;LABELS" ${ARGN})
  if(NOT A_PROGRAMS AND (NOT A_LABELS OR "unit" IN_LIST A_LABELS))
    list(APPEND A_LABELS unit script)
  endif()
  add_test(NAME ${A_NAME} COMMAND ${A_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  _atoll_register_test(${A_NAME} "${A_TIMEOUT}" "${A_LABELS}" ${A_PROGRAMS})
endfunction()
