# The only ways to add a target: each gets the house's compiler settings.

# atoll_library(NAME common SRCS a.cc ... DEPS ... PRIVATE_DEPS ...): target atoll_common, alias atoll::common.
function(atoll_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(A_SRCS)
    add_library(atoll_${A_NAME} STATIC ${A_SRCS})
    set(scope PUBLIC)
    target_link_libraries(atoll_${A_NAME} PRIVATE atoll_compiler ${A_PRIVATE_DEPS})
  else()
    add_library(atoll_${A_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(atoll::${A_NAME} ALIAS atoll_${A_NAME})
  target_include_directories(atoll_${A_NAME} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(atoll_${A_NAME} ${scope} ${A_DEPS})
endfunction()

# atoll_binary(NAME atollctl SRCS ... DEPS ...): a program in bin/.
function(atoll_binary)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_link_libraries(${A_NAME} PRIVATE atoll_compiler ${A_DEPS})
endfunction()

# Labels, time limit and environment of a ctest entry. Every test also carries its folder as a label: `ctest -L server`.
# Label `long` keeps a test out of scripts/test.sh unless --full is given.
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
  if(ATOLL_SANITIZE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${ATOLL_SANITIZE_ENVIRONMENT})
  endif()
endfunction()

# atoll_test(NAME core_merge_test SRCS ... DEPS ... [LABELS unit] [TIMEOUT s]): a GoogleTest program, one ctest entry.
# ATOLL_SOURCE_DIR and ATOLL_BIN_DIR name the source tree and the folder of our programs.
# The target <folder>_tests builds all tests of a folder.
function(atoll_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${A_NAME} PRIVATE atoll_compiler ${A_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${A_NAME} PRIVATE ATOLL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ATOLL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  if(NOT TARGET ${folder}_tests)
    add_custom_target(${folder}_tests)
  endif()
  add_dependencies(${folder}_tests ${A_NAME})
  add_test(NAME ${A_NAME} COMMAND ${A_NAME})
  _atoll_register_test(${A_NAME} "${A_TIMEOUT}" "${A_LABELS}")
endfunction()

# atoll_script_test(NAME style_includes COMMAND python3 x.py ... [LABELS unit] [TIMEOUT s]): any other program as a test.
# Exit code 77 means skipped: the machine lacks something that the test needs, and the output says what.
function(atoll_script_test)
  cmake_parse_arguments(A "" "NAME;TIMEOUT" "COMMAND;LABELS" ${ARGN})
  add_test(NAME ${A_NAME} COMMAND ${A_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  _atoll_register_test(${A_NAME} "${A_TIMEOUT}" "${A_LABELS}")
endfunction()

function(_atoll_prepare_pch_target target launcher)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
  # g++ takes a precompiled header only when nothing is included before it, so the namespace header stands inside it.
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(REMOVE_ITEM options ${ATOLL_NAMESPACE_OPTION})
  set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}")
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # It fits only code compiled with the same -fPIC; CMake would give programs -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# atoll_use_torch_pch(TARGET): compiles the target's files against a precompiled <torch/torch.h>, which takes 15 s to read
# plainly. The target still includes what it uses; nothing changes but the time.
function(atoll_use_torch_pch target)
  if(NOT ATOLL_TORCH_PCH)
    return()
  endif()
  # ccache serves files that use a precompiled header only when told that it may.
  set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(launcher AND launcher STREQUAL ATOLL_CCACHE)
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ATOLL_CCACHE})
  endif()
  if(NOT TARGET atoll_torch_pch)
    set(stub ${CMAKE_BINARY_DIR}/gen/torch_pch.cc)
    file(CONFIGURE OUTPUT ${stub} CONTENT "")
    add_library(atoll_torch_pch OBJECT ${stub})
    target_link_libraries(atoll_torch_pch PRIVATE atoll_compiler ${TORCH_LIBRARIES})
    target_precompile_headers(atoll_torch_pch PRIVATE ${ATOLL_NAMESPACE_HEADER} <torch/torch.h>)
    _atoll_prepare_pch_target(atoll_torch_pch "${launcher}")
  endif()
  _atoll_prepare_pch_target(${target} "${launcher}")
  target_precompile_headers(${target} REUSE_FROM atoll_torch_pch)
endfunction()
