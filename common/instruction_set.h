#ifndef ATOLL_COMMON_INSTRUCTION_SET_H_
#define ATOLL_COMMON_INSTRUCTION_SET_H_

#include <cstdint>
#include <string_view>
#include <vector>

// Loops over tensors are compiled once for each of some instruction sets, and the widest that the processor
// has is taken when the program runs. The loops are written in plain C++ that the compiler vectorises, and
// each result has the same bits on all of them (docs/internals/architecture.md: -ffp-contract=off, no
// reordered sums).
//
// A kernel is a struct with one function:
//
//   struct AddScaled {
//     ATOLL_KERNEL void Run(float factor, const float* values, size_t n, float* sum) { ... }
//   };
//   RunKernel<AddScaled>(factor, values, n, sum);
//
// What Run calls is either ATOLL_KERNEL or ATOLL_INLINE itself or small enough to be inlined; a lambda or an
// ordinary function would be compiled for the baseline. GCC's target_clones would do the choosing too, but
// offers no way to call each version in a test, and its resolvers run before the sanitizers are up.

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

/// Those that this processor runs, narrowest first; kBaseline is always among them.
std::vector<InstructionSet> RunnableInstructionSets();

/// What RunKernel takes: the widest runnable one, unless a ForcedInstructionSet says otherwise. Thread-safe.
InstructionSet ChosenInstructionSet();

/// Has RunKernel take `set`, which must be runnable, on all threads while this object lives: for tests and
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
