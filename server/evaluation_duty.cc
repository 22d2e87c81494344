#include "server/evaluation_duty.h"

#include <algorithm>

namespace atoll {
namespace {

constexpr size_t kKeptDuties = 16;

}  // namespace

bool EvaluationDuty::Due(Version version, bool last) const {
  if (version == Version(0) || last) return true;
  return every_ > 0 && version.value() % every_ == 0;
}

bool EvaluationDuty::Assign(const WorkerName& worker, WorkerRole role, Version version, bool last,
                            std::span<const WorkerName> live) {
  if (!Due(version, last) || HasReport(version)) return false;
  if (by_ == EvaluatedBy::kEvaluator) return role == WorkerRole::kEvaluator;
  if (role != WorkerRole::kTrainer || live.empty()) return false;
  WorkerName& holder = holders_[version];
  if (std::ranges::find(live, holder) == live.end()) holder = live.front();
  const bool chosen = holder == worker;
  // Duties of versions long gone are of no use to anybody.
  while (holders_.size() > kKeptDuties) holders_.erase(holders_.begin());
  return chosen;
}

void EvaluationDuty::Reported(Version version) { reported_.insert(version); }

WorkerName EvaluationDuty::Holder(Version version) const {
  const auto it = holders_.find(version);
  return it == holders_.end() ? WorkerName() : it->second;
}

}  // namespace atoll
