#include "server/run/training_time.h"

#include <algorithm>
#include <vector>
#include "server/members/member_lists.h"

namespace atl {

Duration TrainingTime::Idle(const Round& round, Duration lease) const {
  const Duration alone = trained_since_ - round.opened_at();
  // Workers that return within a lease, as after a restart of the coordinator, have trained meanwhile.
  return alone > lease ? alone : Duration(0);
}

std::optional<double> TrainingTime::IdleSeconds(const Round& round, Duration lease,
                                                const MemberRegistry& members) const {
  if (!measured()) return std::nullopt;
  std::vector<WorkerName> contributors;
  for (const Contribution& contribution : round.Contributions()) {
    contributors.push_back(contribution.key.worker);
  }
  // For a part of its time too few trained; how many of them, and for how long, the tokens do not say.
  if (MostJoinedAfter(members, round.opened_at(), contributors)) return std::nullopt;
  return ToSeconds(Idle(round, lease));
}

double TrainingTime::WorkedSeconds(const Round& round, Duration lease, const MemberRegistry& members,
                                   MonoTime now) const {
  if (!measured()) return 0;
  MonoTime since = round.opened_at() + Idle(round, lease);
  const auto joined = MostJoinedAfter(members, round.opened_at(), LiveOf(members, WorkerRole::kTrainer));
  if (joined) since = std::max(since, *joined);
  return ToSeconds(now - since);
}

}  // namespace atl
