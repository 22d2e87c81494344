# ATOLL_GLOO: whether this LibTorch can connect the ranks of an island (worker/torch/c10d_group.cc). Needs c10d's group for
# Gloo, which LibTorch exports, and Gloo's headers beside LibTorch's: Debian has them in libgloo-dev. PyTorch's wheels leave
# them out. For a wheel, get the Gloo that its PyTorch was built from (third_party/gloo of that release) and give
# -DATOLL_GLOO_INCLUDE=DIR. Headers of another version may not fit the Gloo inside LibTorch.
set(ATOLL_GLOO OFF)
if(ATOLL_WITH_TORCH)
  find_path(ATOLL_C10D_INCLUDE torch/csrc/distributed/c10d/ProcessGroupGloo.hpp PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
  find_path(ATOLL_GLOO_INCLUDE gloo/algorithm.h PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
  if(ATOLL_C10D_INCLUDE AND ATOLL_GLOO_INCLUDE)
    set(ATOLL_GLOO ON)
    # A library of its own on Debian, a part of LibTorch in PyTorch's wheels.
    find_library(ATOLL_GLOO_LIBRARY gloo)
    if(NOT ATOLL_GLOO_LIBRARY)
      set(ATOLL_GLOO_LIBRARY "")
    endif()
  else()
    message(STATUS "No Gloo beside LibTorch in ${TORCH_INCLUDE_DIRS}: atoll-worker is built without --ranks (libgloo-dev has it)")
  endif()
endif()

# atoll_use_c10d(target source): c10d in this source of the target, with NCCL where LibTorch and its headers are there.
function(atoll_use_c10d target source)
  set(switches -DUSE_C10D_GLOO)
  target_link_libraries(${target} PUBLIC ${ATOLL_GLOO_LIBRARY})
  target_include_directories(${target} SYSTEM PRIVATE ${ATOLL_GLOO_INCLUDE})
  if(TORCH_CUDA_LIBRARIES)
    find_path(ATOLL_NCCL_INCLUDE nccl.h)
    if(ATOLL_NCCL_INCLUDE AND EXISTS ${ATOLL_C10D_INCLUDE}/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp)
      list(APPEND switches -DUSE_C10D_NCCL)
      target_include_directories(${target} SYSTEM PRIVATE ${ATOLL_NCCL_INCLUDE})
    endif()
  endif()
  # The target's other sources share a precompiled header without the switches.
  set_source_files_properties(${source} PROPERTIES
    COMPILE_OPTIONS "${switches}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
