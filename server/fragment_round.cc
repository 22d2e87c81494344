#include "server/fragment_round.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/refusal.h"

namespace atoll {
namespace {

// Rounds whose contributions are remembered, so that a push whose answer was lost is known again.
constexpr size_t kPastRounds = 64;

bool SameContent(const Contribution& a, const Contribution& b) {
  return a.codec == b.codec && a.payload_bytes == b.payload_bytes && a.payload_crc32c == b.payload_crc32c;
}

}  // namespace

FragmentRound::FragmentRound(FragmentLayout layout, Epoch epoch, ConfigPtr config)
    : layout_(std::move(layout)), epoch_(epoch), config_(config), next_config_(std::move(config)) {}

void FragmentRound::Open(Version head, const Membership& membership, MonoTime now) {
  head_ = head;
  config_ = next_config_;
  closing_ = false;
  excluded_.clear();
  const std::vector<WorkerName> members = membership.ActiveTrainers();
  active_at_open_ = static_cast<uint32_t>(members.size());
  round_.emplace(
      RoundOpening{
          .epoch = epoch_, .fragment = layout_.id, .base = head, .opened_at = now, .members = members},
      config_->run.round);
}

absl::Status FragmentRound::Stale(const ContributionKey& key) const {
  // While a round is being closed, the version that is about to appear is the one to wait for.
  const Version adopt = closing_ ? Next(head_) : head_;
  const char* why = finished_  ? "the run is finished"
                    : closing_ ? "its round has closed and is being committed"
                               : "a newer version is published";
  return Refuse(
      Refusal{.reason = RefusalReason::kStaleBase,
              .metadata = {{kHeadVersionKey, std::to_string(adopt.value())}},
              .retry_after = std::nullopt},
      absl::StrFormat(
          "the contribution of worker '%s' to fragment %d on base version %d came too late: %s; adopt "
          "version %d",
          key.worker, key.fragment.value(), key.base.value(), why, adopt.value()));
}

absl::StatusOr<Round::Arrival> FragmentRound::Check(const Contribution& contribution) const {
  const ContributionKey& key = contribution.key;
  if (key.base > head_) {
    return Refuse(
        RefusalReason::kUnknownBase,
        absl::StrFormat("worker '%s' contributes to base version %d of fragment %d, whose head is %d; pull "
                        "again",
                        key.worker, key.base.value(), key.fragment.value(), head_.value()));
  }
  if (const Contribution* past = FindCommitted(key.base, key.worker); past != nullptr) {
    if (SameContent(*past, contribution)) return Round::Arrival::kDuplicate;
    return Stale(key);
  }
  if (key.base < head_ || !round_) return Stale(key);
  if (Accepting(key.worker)) {
    return WithRetryAfter(
        absl::UnavailableError(
            absl::StrFormat("an earlier upload of worker '%s' is just being written; ask again", key.worker)),
        Seconds(0.2));
  }
  if (finished_) return Stale(key);
  auto arrival = round_->Check(contribution);
  if (absl::IsAlreadyExists(arrival.status())) {
    return Refuse(RefusalReason::kAlreadyPushed, std::string(arrival.status().message()));
  }
  if (arrival.ok() && *arrival == Round::Arrival::kAccepted && closing_) return Stale(key);
  return arrival;
}

absl::Status FragmentRound::BeginAccept(const Contribution& contribution) {
  const auto arrival = Check(contribution);
  if (!arrival.ok()) return arrival.status();
  if (*arrival == Round::Arrival::kDuplicate) {
    return absl::AlreadyExistsError(
        absl::StrFormat("the contribution of worker '%s' is here already", contribution.key.worker));
  }
  accepting_.insert(contribution.key.worker);
  return absl::OkStatus();
}

void FragmentRound::EndAccept(const Contribution& contribution, bool durable, MonoTime now) {
  accepting_.erase(contribution.key.worker);
  // The round cannot have changed: it closes only when no acceptance is in flight.
  if (durable) (void)round_->Arrived(contribution, now);
}

std::optional<std::vector<Contribution>> FragmentRound::BeginClose() {
  closing_ = true;
  if (!accepting_.empty() || !round_) return std::nullopt;
  std::vector<Contribution> contributions = round_->Contributions();
  std::erase_if(contributions, [&](const Contribution& contribution) {
    return std::ranges::find(excluded_, contribution.key.worker) != excluded_.end();
  });
  return contributions;
}

void FragmentRound::Committed(const RoundRecord& record) {
  past_.push_back({.base = Version(record.version.value() - 1), .contributions = record.contributions});
  while (past_.size() > kPastRounds) past_.pop_front();
}

const Contribution* FragmentRound::FindCommitted(Version base, const WorkerName& worker) const {
  for (const PastRound& round : past_) {
    if (round.base != base) continue;
    for (const Contribution& contribution : round.contributions) {
      if (contribution.key.worker == worker) return &contribution;
    }
  }
  return nullptr;
}

}  // namespace atoll
