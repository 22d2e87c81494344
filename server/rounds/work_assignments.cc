#include "server/rounds/work_assignments.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/planted_defect.h"

namespace atl {
namespace {

// Bases that a worker may still contribute to although it has pulled newer ones: a few.
constexpr size_t kKeptAssignments = 8;
// Where a worker was sent is not known after a restart: it may have come so many rounds further since its
// last contribution that counted.
constexpr uint64_t kUnknownRounds = 64;
constexpr FragmentId kCounted{0};

uint64_t SamplesPerStep(const RunOptions& run) { return uint64_t{run.inner.batch} * run.inner.accumulation; }

/// Overlapped, a worker goes on while its last contribution is unanswered: the next one is of more steps than
/// its plan.
bool MayGoOn(const RunOptions& run) { return run.sync.mode == SyncMode::kOverlapped; }

uint32_t MostSteps(const RunOptions& run) {
  const bool varies = run.inner.pace == InnerPace::kAdaptive || MayGoOn(run);
  return varies ? MostPacedSteps(run.inner.steps) : run.inner.steps;
}

uint32_t Parts(const RunOptions& run) { return run.data.mode == DataMode::kShared ? run.data.partitions : 0; }

}  // namespace

WorkAssignments::WorkAssignments(const RunOptions& run, uint32_t max_ranks)
    : max_ranks_(max_ranks), shares_(Parts(run)) {}

void WorkAssignments::SetRanks(const WorkerName& worker, uint32_t ranks) {
  accounts_[worker].ranks = std::clamp(ranks, 1U, max_ranks_);
  if (accounts_[worker].ranks > 1) {
    islands_.insert(worker);
  } else {
    islands_.erase(worker);
  }
}

uint32_t WorkAssignments::RanksOf(const WorkerName& worker) const {
  const auto account = accounts_.find(worker);
  return account == accounts_.end() || account->second.ranks == 0 ? max_ranks_ : account->second.ranks;
}

uint64_t WorkAssignments::ActiveRanks(const Membership& membership) const {
  uint64_t ranks = membership.active_trainers();
  for (const WorkerName& worker : islands_) {
    const Member* const member = membership.Find(worker);
    const bool trains = member != nullptr && member->role == WorkerRole::kTrainer;
    if (trains && member->state == MemberState::kActive) ranks += accounts_.at(worker).ranks - 1;
  }
  return ranks;
}

void WorkAssignments::Restore(const std::vector<PartitionEntry>& partitions) {
  for (const PartitionEntry& entry : partitions) shares_.Restore(entry.partition, entry.samples_consumed);
}

void WorkAssignments::LearnPace(const std::vector<RoundRecord>& rounds) {
  const RoundRecord* before = nullptr;
  for (const RoundRecord& record : rounds) {
    if (record.fragment != kCounted) continue;
    const bool follows = before != nullptr && before->epoch == record.epoch;
    // By the wall clock: when it was set back in between, the round says nothing.
    const Duration took = follows ? Duration(record.closed_unix_ns - before->closed_unix_ns) : Duration(0);
    before = &record;
    for (const Contribution& one : record.contributions) {
      if (Next(one.key.base) == record.version) accounts_[one.key.worker].pace.Add(one.steps, took);
    }
  }
}

void WorkAssignments::Joined(const Member& member) {
  Account& account = accounts_[member.name];
  account.given.clear();
  account.carried.reset();
  account.believed.reset();
  if (member.partition && shares_.count() > 0) {
    account.believed =
        DataPlace{.partition = *member.partition, .position = shares_.promised(*member.partition)};
  }
}

void WorkAssignments::Forget(const WorkerName& worker) {
  Left(worker);
  islands_.erase(worker);
  accounts_.erase(worker);
}

const WorkAssignments::Assignment* WorkAssignments::Find(const WorkerName& worker, Version base) const {
  const auto account = accounts_.find(worker);
  if (account == accounts_.end()) return nullptr;
  const auto& given = account->second.given;
  const auto it = std::ranges::find(given, base, &Assignment::base);
  return it == given.end() ? nullptr : &*it;
}

uint32_t WorkAssignments::StepsFor(const WorkerName& worker, const RunOptions& run,
                                   const Membership& membership) const {
  if (run.inner.pace == InnerPace::kFixed) return run.inner.steps;
  std::vector<double> rates;
  for (const WorkerName& name : membership.ActiveTrainers()) rates.push_back(steps_per_second(name));
  return PacedSteps(steps_per_second(worker), rates, run.inner.steps);
}

void WorkAssignments::ReleaseLongGone(const WorkerName& but, const Membership& membership, MonoTime now) {
  if (readers_checked_ == membership.changes() && now < reader_gone_at_) return;
  readers_checked_ = membership.changes();
  reader_gone_at_ = MonoTime::max();
  for (const WorkerName& reader : shares_.readers()) {
    const MonoTime gone_at = membership.LongGoneAt(reader);
    if (reader != but && gone_at <= now) {
      shares_.Release(reader);
    } else {
      reader_gone_at_ = std::min(reader_gone_at_, gone_at);
    }
  }
}

std::optional<DataPlace> WorkAssignments::PlaceFor(const Member& member, Version base,
                                                   const Membership& membership, MonoTime now) {
  if (shares_.count() == 0 || !member.partition) return std::nullopt;
  ReleaseLongGone(member.name, membership, now);
  reader_gone_at_ = std::min(reader_gone_at_, membership.LongGoneAt(member.name));  // it reads from here on
  return shares_.Assign(member.name, base, *member.partition, membership.UnattendedPartitions(now),
                        accounts_[member.name].carried);
}

WorkAssignments::Assigned WorkAssignments::Assign(const Member& member, Version base, const RunOptions& run,
                                                  const Membership& membership, MonoTime now) {
  Account& account = accounts_[member.name];
  const Assignment* given = Find(member.name, base);
  if (given == nullptr) {
    account.given.push_back({.base = base,
                             .steps = StepsFor(member.name, run, membership),
                             .from = PlaceFor(member, base, membership, now),
                             .at = now});
    if (account.given.size() > kKeptAssignments) account.given.pop_front();
    given = &account.given.back();
  }
  Assigned answer{.steps = given->steps};
  // Compared with what the worker said, never with what it was told: an answer may be lost on its way.
  if (given->from && given->from != account.believed) answer.go_to = given->from;
  return answer;
}

absl::Status WorkAssignments::Cap(const Member& member, const RunOptions& run,
                                  Contribution& contribution) const {
  if (Planted(PlantedDefect::kTrustsClaims)) return absl::OkStatus();
  const bool counted = contribution.key.fragment == kCounted && !MayGoOn(run);
  const Assignment* given = counted ? Find(member.name, contribution.key.base) : nullptr;
  const uint32_t steps = given != nullptr ? given->steps : MostSteps(run);
  contribution.steps = std::min(contribution.steps, steps);
  // By the steps that it claims itself: tokens_squared_per_step weighs many tokens of few steps heavily.
  const uint64_t claimed = std::max(contribution.steps, 1U);
  const uint64_t ranks = RanksOf(member.name);
  contribution.tokens = std::min(contribution.tokens, claimed * run.tokens_per_step() * ranks);
  if (shares_.count() == 0 || !member.partition) {
    contribution.partition.reset();
    return absl::OkStatus();
  }
  const uint32_t partition = contribution.partition.value_or(*member.partition);
  if (partition >= shares_.count()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("worker '%s' names partition %d of the shared data, which has %d", member.name,
                        partition, shares_.count()));
  }
  contribution.partition = partition;
  const bool as_given = given != nullptr && given->from && given->from->partition == partition;
  const uint64_t most =
      as_given ? given->from->position + steps * SamplesPerStep(run) * ranks
               : shares_.promised(partition) + kUnknownRounds * MostSteps(run) * SamplesPerStep(run) * ranks;
  contribution.samples_consumed = std::min(contribution.samples_consumed, most);
  return absl::OkStatus();
}

void WorkAssignments::Accepted(const Contribution& contribution, uint64_t claimed, MonoTime now) {
  const ContributionKey& key = contribution.key;
  if (key.fragment != kCounted) return;
  Account& account = accounts_[key.worker];
  if (const Assignment* given = Find(key.worker, key.base); given != nullptr) {
    account.pace.Add(contribution.steps, now - given->at);
  }
  if (!contribution.partition || *contribution.partition >= shares_.count()) return;
  const uint32_t partition = *contribution.partition;
  shares_.Accepted(key.worker, key.base, {.partition = partition, .position = contribution.samples_consumed});
  account.carried.reset();
  account.believed = DataPlace{.partition = partition, .position = claimed};
}

void WorkAssignments::Rejected(const Contribution& contribution, uint64_t claimed, bool carried) {
  if (contribution.key.fragment != kCounted || !contribution.partition) return;
  Account& account = accounts_[contribution.key.worker];
  account.believed = DataPlace{.partition = *contribution.partition, .position = claimed};
  account.carried.reset();
  if (!carried) return;
  account.carried =
      DataPlace{.partition = *contribution.partition, .position = contribution.samples_consumed};
}

void WorkAssignments::Excluded(const Contribution& contribution, const std::vector<Contribution>& others) {
  if (contribution.key.fragment != kCounted || !contribution.partition) return;
  if (*contribution.partition >= shares_.count()) return;
  uint64_t remaining = 0;
  for (const Contribution& other : others) {
    if (other.key != contribution.key && other.partition == contribution.partition) {
      remaining = std::max(remaining, other.samples_consumed);
    }
  }
  shares_.Withdrawn(*contribution.partition, remaining);
}

std::vector<PartitionEntry> WorkAssignments::After(FragmentId fragment,
                                                   const std::vector<Contribution>& contributions) const {
  std::map<uint32_t, uint64_t> positions;
  for (const Contribution& contribution : contributions) {
    if (fragment != kCounted || !contribution.partition || *contribution.partition >= shares_.count())
      continue;
    uint64_t& position = positions[*contribution.partition];
    position = std::max({position, shares_.consumed(*contribution.partition), contribution.samples_consumed});
  }
  std::vector<PartitionEntry> entries;
  for (const auto& [partition, position] : positions) {
    entries.push_back({.partition = partition, .samples_consumed = position});
  }
  return entries;
}

void WorkAssignments::Committed(FragmentId fragment, const std::vector<Contribution>& contributions) {
  for (const PartitionEntry& entry : After(fragment, contributions)) {
    shares_.Committed({.partition = entry.partition, .position = entry.samples_consumed});
  }
}

uint32_t WorkAssignments::steps(const WorkerName& worker) const {
  const auto it = accounts_.find(worker);
  return it == accounts_.end() || it->second.given.empty() ? 0 : it->second.given.back().steps;
}

double WorkAssignments::steps_per_second(const WorkerName& worker) const {
  const auto it = accounts_.find(worker);
  return it == accounts_.end() ? 0 : it->second.pace.steps_per_second();
}

}  // namespace atl
