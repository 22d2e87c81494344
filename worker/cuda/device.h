#ifndef ATOLL_WORKER_CUDA_DEVICE_H_
#define ATOLL_WORKER_CUDA_DEVICE_H_

// The primitives that kernels are written in. The compiler chooses what they are: nvcc compiles them for a
// GPU, any other compiler for the host executor (worker/cuda/host_executor.h), which runs the same kernel
// source and checks every access.
//
//   ThreadIndex(), BlockIndex(), BlockThreads()  position in a launch; blocks and threads have one dimension
//   Barrier()                                    of all threads of the block; orders their memory accesses
//   ShuffleXor(value, mask), ShuffleFrom(value, lane), Ballot(flag)
//                                                of all 32 threads of a warp; order no memory accesses
//   CountBits(word)                              ones in a 32-bit word
//   GlobalSpan<T>                                device memory: Load, Store, LoadAs, StoreAs, AtomicMin
//   SharedArray<T, n>                            memory of the block: Load, Store, AtomicAdd, AtomicOr
//   ATOLL_SHARED(SharedArray<T, n>, name)        declares one in a kernel's function; uninitialised
//   ATOLL_UNROLL                                 before a loop over an array that nvcc must keep in registers
//
// A kernel is a struct with the function that every thread runs, and the arguments of a launch:
//
//   struct Scale {
//     static constexpr const char* kName = "scale";
//     struct Arguments { GlobalSpan<float> values; float factor; };
//     ATOLL_DEVICE static void Run(const Arguments& in) { ... }
//   };
//
// Rules: blocks have a multiple of 32 threads. LoadAs<Wide>(i) and StoreAs(i, wide) move sizeof(Wide) bytes
// at element i; the address is a multiple of alignof(Wide), and the elements lie within the span.
//
// Arithmetic: a kernel has the bits of the codec that it stands for (core/codec.h). nvcc is therefore called
// with -fmad=false -prec-div=true -prec-sqrt=true -ftz=false: every operation is rounded once, to nearest
// even, divisions too, and subnormal values stay. A GPU gives another NaN than a processor, so a kernel that
// stores one names its bits.

#include <cstddef>
#include <cstdint>

namespace atl::device {

inline constexpr uint32_t kWarp = 32;

/// Four values that are moved in one access.
struct alignas(16) Four {
  float at[4];
};

/// Two words that are moved in one access.
struct alignas(8) TwoWords {
  uint32_t at[2];
};

}  // namespace atl::device

#ifdef __CUDACC__
#include "worker/cuda/device_on_gpu.h"
#else
#include "worker/cuda/device_on_host.h"
#endif

#endif  // ATOLL_WORKER_CUDA_DEVICE_H_
