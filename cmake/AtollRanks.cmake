# ATOLL_GLOO, ATOLL_NCCL: over what this LibTorch can connect the ranks of an island (worker/torch/c10d_group.cc), on the CPU and on
# GPUs. Each needs c10d's group in LibTorch and the library's own headers. Gloo: Debian has the headers in libgloo-dev. PyTorch's
# wheels leave them out; for a wheel, get the Gloo that its PyTorch was built from (third_party/gloo of that release) and give
# -DATOLL_GLOO_INCLUDE=DIR. Headers of another version may not fit the Gloo inside LibTorch. NCCL: the wheels for CUDA install
# its headers beside PyTorch.
set(ATOLL_GLOO OFF)
set(ATOLL_NCCL OFF)
if(ATOLL_WITH_TORCH)
  find_path(ATOLL_C10D_INCLUDE torch/csrc/distributed/c10d/TCPStore.hpp PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
  find_path(ATOLL_GLOO_INCLUDE gloo/algorithm.h PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
  set(c10d ${ATOLL_C10D_INCLUDE}/torch/csrc/distributed/c10d)
  if(ATOLL_GLOO_INCLUDE AND EXISTS ${c10d}/ProcessGroupGloo.hpp)
    set(ATOLL_GLOO ON)
    # A library of its own on Debian, a part of LibTorch in PyTorch's wheels.
    find_library(ATOLL_GLOO_LIBRARY gloo)
    if(NOT ATOLL_GLOO_LIBRARY)
      set(ATOLL_GLOO_LIBRARY "")
    endif()
  endif()
  if(TORCH_CUDA_LIBRARIES)
    find_path(ATOLL_NCCL_INCLUDE nccl.h HINTS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include)
    if(ATOLL_NCCL_INCLUDE AND EXISTS ${c10d}/ProcessGroupNCCL.hpp)
      set(ATOLL_NCCL ON)
    endif()
  endif()
  if(NOT ATOLL_GLOO AND NOT ATOLL_NCCL)
    message(STATUS "Neither Gloo nor NCCL beside LibTorch in ${TORCH_INCLUDE_DIRS}: atoll-worker is built without --ranks (libgloo-dev has it)")
  elseif(NOT ATOLL_GLOO)
    message(STATUS "No Gloo beside LibTorch in ${TORCH_INCLUDE_DIRS}: --ranks of atoll-worker is for GPUs only")
  endif()
endif()

# atoll_use_c10d(target source): c10d in this source of the target.
function(atoll_use_c10d target source)
  set(switches)
  if(ATOLL_GLOO)
    list(APPEND switches -DUSE_C10D_GLOO)
    target_link_libraries(${target} PUBLIC ${ATOLL_GLOO_LIBRARY})
    target_include_directories(${target} SYSTEM PRIVATE ${ATOLL_GLOO_INCLUDE})
  endif()
  if(ATOLL_NCCL)
    list(APPEND switches -DUSE_C10D_NCCL)
    target_include_directories(${target} SYSTEM PRIVATE ${ATOLL_NCCL_INCLUDE})
  endif()
  # The target's other sources share a precompiled header without the switches.
  set_source_files_properties(${source} PROPERTIES
    COMPILE_OPTIONS "${switches}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
