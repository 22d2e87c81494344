#include "common/instruction_set.h"

#include <atomic>

namespace atl {
namespace {

bool Runs(InstructionSet set) {
#ifdef ATOLL_X86_KERNELS
  switch (set) {
    case InstructionSet::kBaseline:
      return true;
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2");
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return set == InstructionSet::kBaseline;
}

std::atomic<InstructionSet>& Chosen() {
  static std::atomic<InstructionSet> chosen(RunnableInstructionSets().back());
  return chosen;
}

}  // namespace

std::string_view InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      return "baseline";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<InstructionSet> RunnableInstructionSets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set :
       {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (Runs(set)) sets.push_back(set);
  }
  return sets;
}

InstructionSet ChosenInstructionSet() { return Chosen().load(std::memory_order_relaxed); }

ForcedInstructionSet::ForcedInstructionSet(InstructionSet set) : before_(Chosen().exchange(set)) {}
ForcedInstructionSet::~ForcedInstructionSet() { Chosen().store(before_); }

}  // namespace atl
