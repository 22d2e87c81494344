#include <algorithm>

#include "server/run/coordinator_state.h"

// A restore: other contents under a new epoch.

namespace atl {

void CoordinatorState::HoldAcceptances() {
  MutexLock lock(&mutex_);
  acceptances_held_ = true;
}

void CoordinatorState::ReleaseAcceptances() {
  MutexLock lock(&mutex_);
  acceptances_held_ = false;
}

absl::Status CoordinatorState::AwaitAcceptances(Duration timeout) {
  const MonoTime deadline = SteadyNow() + timeout;
  MutexLock lock(&mutex_);
  while (std::ranges::any_of(fragments_, [](const FragmentRound& f) { return f.accepting() > 0; })) {
    if (!acceptance_ended_.WaitUntil(&mutex_, deadline)) {
      return absl::UnavailableError(
          "a contribution is being written to disk and does not come to an end; try again");
    }
  }
  return absl::OkStatus();
}

std::vector<FragmentId> CoordinatorState::Restored(const EpochStart& start,
                                                   const std::vector<Version>& sources, MonoTime now,
                                                   Effects& effects) {
  MutexLock lock(&mutex_);
  identity_.epoch = start.epoch;
  members_.BeginEpoch(start.epoch, start.partitions);
  std::vector<RunStatistics::RestoredFragment> restored;
  for (const RoundRecord& record : start.records) {
    restored.push_back({record.fragment, record.version, sources[record.fragment.value()]});
  }
  statistics_.Restored(start.records.front().committed_tokens, restored);
  offences_.BeginEpoch();
  due_bans_.clear();
  fragments_.clear();
  OpenRounds(start.layouts, now);
  for (const RoundRecord& record : start.records) {
    FragmentRound& fragment = fragments_[record.fragment.value()];
    fragment.Committed(record);
    fragment.stored = record.version;
    fragment.Open(record.version, members_.membership(), now);
  }
  fault_.clear();
  finished_at_.reset();
  end_announced_ = false;
  effects.rounds_changed = true;
  return FinishCompleted(now);
}

}  // namespace atl
