# Precompiled headers, shared by all targets of one kind. A file still includes what it uses (the ordinary presets compile
# without precompiled headers, so every header stands alone); what changes is only the time: reading gRPC, protobuf,
# GoogleTest or LibTorch takes longer than compiling our own code.
#
#   kind       for
#   base       libraries: the standard library and Abseil
#   core       the same, for code with the options of core
#   rpc        what includes gRPC and the generated messages
#   cli        programs and commands: rpc, CLI11, nlohmann::json
#   test       GoogleTest programs
#   test_rpc   GoogleTest programs that include gRPC and the generated messages
#   torch      what includes LibTorch
#   none       no precompiled header
set(ATOLL_PCH_STANDARD
  <algorithm> <atomic> <chrono> <cmath> <cstdint> <cstdio> <cstring> <filesystem> <fstream> <functional> <limits> <map>
  <memory> <optional> <set> <span> <sstream> <string> <string_view> <thread> <utility> <variant> <vector>)
set(ATOLL_PCH_ABSEIL
  <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/status.h> <absl/status/statusor.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/synchronization/mutex.h> <absl/time/time.h>)
set(ATOLL_PCH_GRPC
  <grpcpp/grpcpp.h> <grpcpp/support/client_callback.h> <grpcpp/support/server_callback.h>
  <atoll/v1/admin.grpc.pb.h> <atoll/v1/coordinator.grpc.pb.h>)
set(ATOLL_PCH_PROGRAM <CLI/CLI.hpp> <nlohmann/json.hpp>)
set(ATOLL_PCH_GTEST <gmock/gmock.h> <gtest/gtest.h>)

set(ATOLL_PCH_base_HEADERS ${ATOLL_PCH_STANDARD} ${ATOLL_PCH_ABSEIL})
set(ATOLL_PCH_core_HEADERS ${ATOLL_PCH_base_HEADERS})
set(ATOLL_PCH_rpc_HEADERS ${ATOLL_PCH_base_HEADERS} ${ATOLL_PCH_GRPC})
set(ATOLL_PCH_cli_HEADERS ${ATOLL_PCH_rpc_HEADERS} ${ATOLL_PCH_PROGRAM})
set(ATOLL_PCH_test_HEADERS ${ATOLL_PCH_base_HEADERS} ${ATOLL_PCH_GTEST})
set(ATOLL_PCH_test_rpc_HEADERS ${ATOLL_PCH_rpc_HEADERS} ${ATOLL_PCH_GTEST} <nlohmann/json.hpp>)
set(ATOLL_PCH_torch_HEADERS <torch/autograd.h> <torch/types.h> <torch/utils.h>)  # worker/torch/libtorch.h

set(ATOLL_PCH_rpc_LIBRARIES atoll::protos_gen)
set(ATOLL_PCH_cli_LIBRARIES atoll::protos_gen CLI11::CLI11 nlohmann_json::nlohmann_json)
set(ATOLL_PCH_test_LIBRARIES GTest::gmock)
set(ATOLL_PCH_test_rpc_LIBRARIES atoll::protos_gen GTest::gmock nlohmann_json::nlohmann_json)
set(ATOLL_PCH_torch_LIBRARIES ${TORCH_LIBRARIES})

# Of loops over tensors (core/CMakeLists.txt).
set(ATOLL_LOOP_OPTIONS -fno-math-errno -fno-trapping-math $<$<NOT:$<CONFIG:Debug>>:-O3>)

# A precompiled header fits only code that is compiled with the same options, so these are made equal for all.
function(_atoll_prepare_pch_target target kind)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    # CMake would give programs -fPIE where libraries have -fPIC.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  if(kind STREQUAL core AND target STREQUAL "atoll_pch_core")
    target_compile_options(${target} PRIVATE ${ATOLL_LOOP_OPTIONS})
  endif()
  # Our programs are what is tested and measured, not the code of their tests: with less optimisation that compiles a fifth
  # faster, and twice as fast with a sanitizer. Set by kind, not by folder: g++ 13 and later refuse a precompiled header
  # that was made with another -O.
  if(kind MATCHES "^test")
    if(ATOLL_SANITIZE)
      target_compile_options(${target} PRIVATE -O0)
    elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
  # ccache serves files that use a precompiled header only when told that it may.
  set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(launcher AND launcher STREQUAL ATOLL_CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${ATOLL_CCACHE}")
  endif()
endfunction()

function(_atoll_pch_target kind)
  if(TARGET atoll_pch_${kind})
    return()
  endif()
  set(stub ${CMAKE_BINARY_DIR}/gen/pch_${kind}.cc)
  file(CONFIGURE OUTPUT ${stub} CONTENT "")
  add_library(atoll_pch_${kind} OBJECT ${stub})
  target_link_libraries(atoll_pch_${kind} PRIVATE atoll_compiler ${ATOLL_PCH_${kind}_LIBRARIES})
  # No path of this tree may stand in it: clones share a compiler cache only when it is the same in all of them.
  target_include_directories(atoll_pch_${kind} PRIVATE ${PROJECT_SOURCE_DIR})
  target_precompile_headers(atoll_pch_${kind} PRIVATE ${ATOLL_PCH_${kind}_HEADERS})
  _atoll_prepare_pch_target(atoll_pch_${kind} ${kind})
endfunction()

# atoll_use_pch(TARGET KIND): the target's files are compiled against the precompiled header of KIND.
function(atoll_use_pch target kind)
  if(NOT ATOLL_PCH OR kind STREQUAL none)
    return()
  endif()
  if(kind MATCHES "rpc$|^cli$")
    set_property(GLOBAL APPEND PROPERTY ATOLL_PCH_WITH_GRPC ${target})
  endif()
  _atoll_pch_target(${kind})
  _atoll_prepare_pch_target(${target} ${kind})
  target_precompile_headers(${target} REUSE_FROM atoll_pch_${kind})
endfunction()

# Whether the options with which `target` is compiled include those of gRPC::grpc++. PRIVATE dependencies of a library are
# $<LINK_ONLY:...> for those who link it, and no target.
function(_atoll_uses_grpc target result)
  set(${result} FALSE PARENT_SCOPE)
  get_target_property(todo ${target} LINK_LIBRARIES)
  set(seen)
  while(todo)
    list(POP_FRONT todo one)
    if(one STREQUAL gRPC::grpc++)
      set(${result} TRUE PARENT_SCOPE)
      return()
    endif()
    if(TARGET ${one} AND NOT one IN_LIST seen)
      list(APPEND seen ${one})
      get_target_property(next ${one} INTERFACE_LINK_LIBRARIES)
      if(next)
        list(APPEND todo ${next})
      endif()
    endif()
  endwhile()
endfunction()

# g++ 14 refuses a precompiled header where an option of gRPC's is missing; g++ 12 takes it where no option differs. So that
# both refuse it: called when all targets are there.
function(atoll_check_pch)
  get_property(targets GLOBAL PROPERTY ATOLL_PCH_WITH_GRPC)
  foreach(target IN LISTS targets)
    _atoll_uses_grpc(${target} uses)
    if(NOT uses)
      message(SEND_ERROR "${target} uses a precompiled header with gRPC, but does not link it: give it another PCH "
        "(cmake/AtollPch.cmake), or add atoll::protos_gen to its DEPS")
    endif()
  endforeach()
endfunction()
