#include "core/round.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/merge.h"

namespace atl {
namespace {

absl::Status WrongRound(const ContributionKey& key, std::string_view what, uint64_t given, uint64_t open) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "contribution of worker '%s' is for %s %d, but the open round has %d; pull the current version",
      key.worker, std::string(what), given, open));
}

bool SameContent(const Contribution& a, const Contribution& b) {
  return a.key == b.key && a.codec == b.codec && a.payload_bytes == b.payload_bytes &&
         a.payload_crc32c == b.payload_crc32c;
}

/// Whether somebody of this name trains now. One that came back as evaluator does not.
bool Trains(const Membership& membership, std::string_view name) {
  const Member* member = membership.Find(name);
  return member != nullptr && member->live() && member->role == WorkerRole::kTrainer;
}

}  // namespace

Round::Round(const RoundOpening& opening, const RoundOptions& options)
    : epoch_(opening.epoch),
      fragment_(opening.fragment),
      base_(opening.base),
      opened_at_(opening.opened_at),
      options_(options),
      candidates_(opening.members.begin(), opening.members.end()),
      started_at_(opening.opened_at),
      awaits_first_join_(opening.awaits_first_join) {
  gathering_ = base_ == Version(0);
  if (gathering_ && !candidates_.empty()) gather_until_ = opened_at_ + options_.deadline;
  EndGatheringIfComplete(opened_at_, candidates_.size());
}

void Round::EndGatheringIfComplete(MonoTime now, size_t candidates) {
  if (!gathering_ || candidates < options_.start_workers) return;
  gathering_ = false;
  gather_until_.reset();
  started_at_ = now;
}

size_t Round::LiveCandidates(const Membership& membership) const {
  return static_cast<size_t>(std::count_if(candidates_.begin(), candidates_.end(),
                                           [&](const WorkerName& name) { return Trains(membership, name); }));
}

/// Draining workers that are no candidates, and have begun to pull this base.
std::vector<WorkerName> Round::Finishing(const Membership& membership) const {
  std::vector<WorkerName> names;
  for (const WorkerName& name : pulled_) {
    const Member* member = candidates_.contains(name) ? nullptr : membership.Find(name);
    if (member != nullptr && member->role == WorkerRole::kTrainer && member->state == MemberState::kDraining)
      names.push_back(name);
  }
  return names;
}

bool Round::Abandoned(const Membership& membership) const {
  const auto counts = [&](const WorkerName& name) { return Trains(membership, name) || HasArrived(name); };
  return std::none_of(candidates_.begin(), candidates_.end(), counts) && Finishing(membership).empty();
}

void Round::Joined(std::string_view worker, MonoTime now, const Membership& membership) {
  kept_.valid = false;
  if (const auto rejected = rejected_.find(worker); rejected != rejected_.end()) rejected_.erase(rejected);
  // Whatever an earlier life pulled is gone with it.
  if (const auto it = pulled_.find(worker); it != pulled_.end()) pulled_.erase(it);
  if (!Gathering(now)) {
    // A worker that restarts in the middle of a round starts it again, as a joiner does, and must delay
    // no other.
    if (const auto it = candidates_.find(worker); it != candidates_.end() && !HasArrived(worker))
      candidates_.erase(it);
    if (!Abandoned(membership)) return;
    gathering_ = true;
    gather_until_ = now + options_.lease;
    started_at_ = now;
    for (const WorkerName& name : membership.ActiveTrainers()) candidates_.insert(name);
  }
  candidates_.emplace(worker);
  if (!gather_until_) gather_until_ = now + options_.deadline;
  EndGatheringIfComplete(now, LiveCandidates(membership));
}

void Round::Resumed(MonoTime now) {
  kept_.valid = false;
  if (gather_until_) gather_until_ = now + (base_ == Version(0) ? options_.deadline : options_.lease);
  started_at_ = now;
}

void Round::Revived(std::string_view worker, MonoTime now, const Membership& membership) {
  if (Gathering(now)) return;
  if (membership.active_trainers() != 1 || membership.ActiveTrainers().front() != worker) return;
  if (!arrivals_.empty()) return;
  kept_.valid = false;
  gathering_ = false;
  started_at_ = now;
}

void Round::Pulled(std::string_view worker) {
  if (!pulled_.emplace(worker).second || !kept_.valid || options_.mode == RoundMode::kAsync) return;
  const RoundView& view = kept_.view;
  if (!kept_.abandoned && std::binary_search(view.expected.begin(), view.expected.end(), worker)) {
    --kept_.not_pulled;
    return;
  }
  // It joined later, is active, and counts from the next round on, whatever it pulls.
  const bool joined_later = !candidates_.contains(worker) &&
                            std::binary_search(view.next_round.begin(), view.next_round.end(), worker);
  kept_.valid = !kept_.abandoned && (joined_later || HasArrived(worker));
}

void Round::Rejected(std::string_view worker) {
  rejected_.emplace(worker);
  kept_.valid = false;
}

absl::StatusOr<Round::Arrival> Round::Check(const Contribution& contribution) const {
  const ContributionKey& key = contribution.key;
  if (key.epoch != epoch_) return WrongRound(key, "epoch", key.epoch.value(), epoch_.value());
  if (key.fragment != fragment_) return WrongRound(key, "fragment", key.fragment.value(), fragment_.value());
  if (key.base > base_) return WrongRound(key, "base version", key.base.value(), base_.value());
  const auto it = arrivals_.find({key.worker, key.base});
  if (it == arrivals_.end()) return Arrival::kAccepted;
  if (SameContent(it->second.contribution, contribution)) return Arrival::kDuplicate;
  return absl::AlreadyExistsError(
      absl::StrFormat("worker '%s' has already contributed to base version %d, with other content; only the "
                      "first one counts: pull the next version",
                      key.worker, key.base.value()));
}

absl::StatusOr<Round::Arrival> Round::Arrived(const Contribution& contribution, MonoTime now) {
  ATOLL_ASSIGN_OR_RETURN(const Arrival arrival, Check(contribution));
  if (arrival == Arrival::kAccepted) {
    arrivals_.emplace(std::pair(contribution.key.worker, contribution.key.base),
                      ArrivedAt{.contribution = contribution, .at = now});
    TakeIntoView(contribution.key, now);
  }
  return arrival;
}

bool Round::HasArrived(std::string_view worker, Version base) const {
  return arrivals_.contains({WorkerName(worker), base});
}

std::vector<ContributionKey> Round::KeysOf(std::string_view worker) const {
  std::vector<ContributionKey> keys;
  for (auto it = arrivals_.lower_bound({WorkerName(worker), Version(0)});
       it != arrivals_.end() && it->first.first == worker; ++it) {
    keys.push_back(it->second.contribution.key);
  }
  return keys;
}

std::vector<Contribution> Round::Contributions() const {
  std::vector<Contribution> contributions;
  contributions.reserve(arrivals_.size());
  for (const auto& [key, arrived] : arrivals_) contributions.push_back(arrived.contribution);
  SortForSummation(contributions);
  return contributions;
}

bool Round::Gathering(MonoTime now) const { return gathering_ && (!gather_until_ || now < *gather_until_); }

MonoTime Round::StartedAt(MonoTime now) const {
  return gathering_ && gather_until_ && now >= *gather_until_ ? *gather_until_ : started_at_;
}

std::vector<WorkerName> Round::Expected(MonoTime now, const Membership& membership) const {
  std::vector<WorkerName> expected;
  if (options_.mode == RoundMode::kAsync) {
    expected = membership.ActiveTrainers();
    std::erase_if(expected, [this](const WorkerName& name) { return HasArrived(name); });
    return expected;
  }
  if (Abandoned(membership)) {
    for (const WorkerName& name : membership.ActiveTrainers()) {
      if (pulled_.contains(name) && !HasArrived(name) && !rejected_.contains(name)) expected.push_back(name);
    }
    return expected;
  }
  const bool may_yet_pull = MayYetPull(now);  // also when it drains: it may not know
  for (const WorkerName& name : candidates_) {
    if (!Trains(membership, name) || HasArrived(name) || rejected_.contains(name)) continue;
    if (pulled_.contains(name) || may_yet_pull) expected.push_back(name);
  }
  const auto candidates = static_cast<ptrdiff_t>(expected.size());
  for (const WorkerName& name : Finishing(membership)) {
    if (!HasArrived(name) && !rejected_.contains(name)) expected.push_back(name);
  }
  std::inplace_merge(expected.begin(), expected.begin() + candidates, expected.end());
  return expected;
}

/// Active trainers that the round neither has nor waits for.
std::vector<WorkerName> Round::NextRound(MonoTime now, const std::vector<WorkerName>& expected,
                                         const Membership& membership) const {
  if (options_.mode == RoundMode::kAsync || Gathering(now) || Abandoned(membership)) return {};
  std::vector<WorkerName> later = membership.ActiveTrainers();
  std::erase_if(later, [&](const WorkerName& name) {
    return HasArrived(name) || std::binary_search(expected.begin(), expected.end(), name);
  });
  std::sort(later.begin(), later.end());
  return later;
}

void Round::MakeView(MonoTime now, const Membership& membership) const {
  RoundView view{.base = base_,
                 .gathered = static_cast<uint32_t>(LiveCandidates(membership)),
                 .expected = Expected(now, membership),
                 .live_trainers = static_cast<uint32_t>(membership.live_count(WorkerRole::kTrainer))};
  view.next_round = NextRound(now, view.expected, membership);
  const uint64_t expected_lateness = ExpectedLateness(options_.mode, view.live_trainers);
  for (const auto& [key, arrived] : arrivals_) {
    if (key.second.value() + expected_lateness < base_.value()) ++view.overdue;
    if (key.second == base_) {
      view.arrived.push_back({.worker = key.first, .at = arrived.at});
    } else {
      ++view.late;
    }
  }
  std::stable_sort(view.arrived.begin(), view.arrived.end(),
                   [](const ArrivalView& a, const ArrivalView& b) { return a.at < b.at; });
  const auto not_pulled =
      std::ranges::count_if(view.expected, [&](const WorkerName& name) { return !pulled_.contains(name); });
  kept_ = {.valid = true,
           .changes = membership.changes(),
           .gathering = Gathering(now),
           .may_yet_pull = MayYetPull(now),
           .abandoned = options_.mode != RoundMode::kAsync && Abandoned(membership),
           .not_pulled = static_cast<size_t>(not_pulled),
           .view = std::move(view)};
}

/// It has just arrived: changes the view that is kept, or drops it where more than this one worker may
/// change.
void Round::TakeIntoView(const ContributionKey& key, MonoTime at) {
  if (!kept_.valid) return;
  RoundView& view = kept_.view;
  if (key.base != base_) {
    ++view.late;
    if (key.base.value() + ExpectedLateness(options_.mode, view.live_trainers) < base_.value())
      ++view.overdue;
    return;
  }
  if (kept_.abandoned) {
    kept_.valid = false;
    return;
  }
  // In order of time, then of name.
  const auto before = [](const ArrivalView& a, const ArrivalView& b) {
    return std::tie(a.at, a.worker) < std::tie(b.at, b.worker);
  };
  ArrivalView arrival{.worker = key.worker, .at = at};
  const auto place = std::upper_bound(view.arrived.begin(), view.arrived.end(), arrival, before);
  view.arrived.insert(place, std::move(arrival));
  const auto take_out = [&](std::vector<WorkerName>& names) {
    const auto it = std::lower_bound(names.begin(), names.end(), key.worker);
    if (it == names.end() || *it != key.worker) return false;
    names.erase(it);
    return true;
  };
  if (!take_out(view.expected)) {
    (void)take_out(view.next_round);
  } else if (!pulled_.contains(key.worker)) {
    --kept_.not_pulled;
  }
}

const RoundView& Round::View(MonoTime now, const Membership& membership) const {
  if (!kept_.valid || kept_.changes != membership.changes() || kept_.gathering != Gathering(now) ||
      kept_.may_yet_pull != MayYetPull(now)) {
    MakeView(now, membership);
  }
  RoundView& view = kept_.view;
  view.started_at = StartedAt(now);
  view.gathering = kept_.gathering;
  view.gather_until = gather_until_;
  view.first_join_due.reset();
  if (awaits_first_join_ && candidates_.empty() && arrivals_.empty() && view.live_trainers == 0 &&
      base_ != Version(0) && now < started_at_ + options_.lease) {
    view.first_join_due = started_at_ + options_.lease;
  }
  view.expected_change_at.reset();
  if (options_.mode == RoundMode::kBarrier && kept_.not_pulled > 0) {
    view.expected_change_at = view.started_at + options_.lease;
  }
  return view;
}

}  // namespace atl
