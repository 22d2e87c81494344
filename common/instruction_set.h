#ifndef ATOLL_COMMON_INSTRUCTION_SET_H_
#define ATOLL_COMMON_INSTRUCTION_SET_H_

#include <cstdint>
#include <string_view>
#include <vector>

// Loops over tensors are compiled for several instruction sets, and the program uses the widest one that the
// processor has. The loops are plain C++ that the compiler vectorises. All versions give the same bits
// (docs/internals/architecture.md: -ffp-contract=off, no reordered sums).
//
// A kernel is a struct with one function:
//
//   struct AddScaled {
//     ATOLL_KERNEL void Run(float factor, const float* values, size_t n, float* sum) { ... }
//   };
//   RunKernel<AddScaled>(factor, values, n, sum);
//
// Functions that Run calls must be ATOLL_KERNEL, ATOLL_INLINE, or small enough to be inlined; a lambda or an
// ordinary function would be compiled for the baseline. GCC's target_clones could also choose the version,
// but a test could not call each version, and its resolvers run before the sanitizers start.

#if defined(__x86_64__) && defined(__GNUC__)
#define ATOLL_X86_KERNELS 1
#define ATOLL_TARGET_AVX2 __attribute__((target("avx2")))
#define ATOLL_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#endif

#define ATOLL_INLINE [[gnu::always_inline]] inline
#define ATOLL_KERNEL [[gnu::always_inline]] static inline

namespace atl {

enum class InstructionSet : uint8_t { kBaseline = 0, kAvx2 = 1, kAvx512 = 2 };

std::string_view InstructionSetName(InstructionSet set);

/// The sets that this processor supports, narrowest first; always includes kBaseline.
std::vector<InstructionSet> RunnableInstructionSets();

/// The set that RunKernel uses: the widest supported one, unless a ForcedInstructionSet exists. Thread-safe.
InstructionSet ChosenInstructionSet();

/// Makes RunKernel use `set`, which must be supported, on all threads while this object lives. For tests and
/// measurements.
class ForcedInstructionSet {
 public:
  explicit ForcedInstructionSet(InstructionSet set);
  ~ForcedInstructionSet();
  ForcedInstructionSet(const ForcedInstructionSet&) = delete;
  ForcedInstructionSet& operator=(const ForcedInstructionSet&) = delete;

 private:
  const InstructionSet before_;
};

namespace instruction_set_internal {

template <typename Kernel, typename... Arguments>
auto OnBaseline(Arguments... arguments) {
  return Kernel::Run(arguments...);
}

#ifdef ATOLL_X86_KERNELS
template <typename Kernel, typename... Arguments>
ATOLL_TARGET_AVX2 auto OnAvx2(Arguments... arguments) {
  return Kernel::Run(arguments...);
}

template <typename Kernel, typename... Arguments>
ATOLL_TARGET_AVX512 auto OnAvx512(Arguments... arguments) {
  return Kernel::Run(arguments...);
}
#endif

}  // namespace instruction_set_internal

/// Kernel::Run(arguments...) as compiled for the chosen instruction set. Arguments are passed by value:
/// pointers, sizes, numbers, small structs of them.
template <typename Kernel, typename... Arguments>
auto RunKernel(Arguments... arguments) {
#ifdef ATOLL_X86_KERNELS
  switch (ChosenInstructionSet()) {
    case InstructionSet::kAvx512:
      return instruction_set_internal::OnAvx512<Kernel>(arguments...);
    case InstructionSet::kAvx2:
      return instruction_set_internal::OnAvx2<Kernel>(arguments...);
    case InstructionSet::kBaseline:
      break;
  }
#endif
  return instruction_set_internal::OnBaseline<Kernel>(arguments...);
}

}  // namespace atl

#endif  // ATOLL_COMMON_INSTRUCTION_SET_H_
