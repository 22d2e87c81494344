#include "server/confirmations.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/content_hash.h"
#include "common/signature.h"

namespace atoll {
namespace {

std::string Hex(const ContentHash& hash) { return ToHex(Hash128{.low = hash.low, .high = hash.high}); }

EventView Divergence(const ConfirmationAuthor& author, const Confirmation& confirmation,
                     const ContentHash& published) {
  EventView event;
  event.kind = EventKind::kReplicaDiverged;
  event.worker = author.worker;
  event.fragment = confirmation.fragment;
  event.version = confirmation.version;
  event.message = absl::StrFormat(
      "worker '%s' trained on other parameters than were published: version %d of fragment %d has hash %s, "
      "the "
      "worker's memory %s; it is told to pull again (damaged memory is the usual cause)",
      author.worker, confirmation.version.value(), confirmation.fragment.value(), Hex(published),
      Hex(confirmation.published));
  return event;
}

}  // namespace

ConfirmationVerdict JudgeConfirmation(const ConfirmationAuthor& author, std::string_view public_key,
                                      const Confirmation& confirmation,
                                      const std::optional<ContentHash>& published) {
  if (!published.has_value()) return ConfirmationVerdict::kUnknown;
  if (!VerifySignature(public_key, ConfirmationText(author, confirmation), confirmation.signature)) {
    return ConfirmationVerdict::kForged;
  }
  return confirmation.published == *published ? ConfirmationVerdict::kValid : ConfirmationVerdict::kDiverged;
}

std::string_view VerdictName(ConfirmationVerdict verdict) {
  switch (verdict) {
    case ConfirmationVerdict::kValid:
      return "valid";
    case ConfirmationVerdict::kDiverged:
      return "diverged";
    case ConfirmationVerdict::kForged:
      return "forged";
    case ConfirmationVerdict::kUnknown:
      break;
  }
  return "unknown";
}

void FillVotes(RunStore& store, FragmentId fragment, Version version, std::vector<WorkerName>& confirmed_by,
               std::vector<WorkerName>& denied_by) {
  const auto record = store.ReadRound(fragment, version);
  const auto votes = store.Confirmations(fragment, version);
  if (!record.ok() || !votes.ok()) return;
  for (const ConfirmationEntry& vote : *votes) {
    (vote.published == record->published ? confirmed_by : denied_by).push_back(vote.worker);
  }
}

void Confirmations::Restore(const std::vector<RoundRecord>& rounds) {
  for (const RoundRecord& round : rounds) Published(round.fragment, round.version, round.published);
}

void Confirmations::Published(FragmentId fragment, Version version, const ContentHash& hash) {
  const MutexLock lock(&mutex_);
  published_[{fragment, version}] = hash;
  const auto first = published_.lower_bound({fragment, Version(0)});
  const auto end = published_.upper_bound({fragment, Version(~uint64_t{0})});
  if (static_cast<size_t>(std::distance(first, end)) > kVersionsRemembered) published_.erase(first);
}

std::optional<ContentHash> Confirmations::Hash(FragmentId fragment, Version version) const {
  const MutexLock lock(&mutex_);
  const auto it = published_.find({fragment, version});
  return it == published_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Version> Confirmations::Newest(const WorkerName& worker) const {
  const MutexLock lock(&mutex_);
  const auto it = newest_.find(worker);
  return it == newest_.end() ? std::nullopt : std::optional(it->second);
}

void Confirmations::Keep(const ConfirmationAuthor& author, const Confirmation& confirmation) {
  const absl::Status stored = store_->PutConfirmation({.fragment = confirmation.fragment,
                                                       .version = confirmation.version,
                                                       .worker = author.worker,
                                                       .published = confirmation.published,
                                                       .signature = confirmation.signature});
  if (!stored.ok()) {
    log_.Warning("a confirmation could not be stored",
                 {{"worker", author.worker}, {"version", confirmation.version.value()}, {"error", stored}});
  }
}

void Confirmations::Confirmed(const WorkerName& worker, const Confirmation& confirmation) {
  if (confirmation.fragment != FragmentId(0)) return;
  const MutexLock lock(&mutex_);
  const auto [it, added] = newest_.try_emplace(worker, confirmation.version);
  if (!added) it->second = std::max(it->second, confirmation.version);
}

Confirmations::Result Confirmations::Take(const ConfirmationAuthor& author, std::string_view public_key,
                                          std::span<const Confirmation> confirmations) {
  Result result;
  for (const Confirmation& confirmation : confirmations) {
    const std::optional<ContentHash> published = Hash(confirmation.fragment, confirmation.version);
    const LogFields fields = {{"worker", author.worker}, {"version", confirmation.version.value()}};
    result.verdicts.push_back(JudgeConfirmation(author, public_key, confirmation, published));
    switch (result.verdicts.back()) {
      case ConfirmationVerdict::kValid:
        Keep(author, confirmation);
        Confirmed(author.worker, confirmation);
        break;
      case ConfirmationVerdict::kDiverged:
        Keep(author, confirmation);
        result.diverged = true;
        result.events.push_back(Divergence(author, confirmation, *published));
        break;
      case ConfirmationVerdict::kForged:
        log_.Warning("a confirmation was not signed by its worker's key; dropped", fields);
        break;
      case ConfirmationVerdict::kUnknown:
        log_.Debug("a confirmation of a version that is not known any more; dropped", fields);
        break;
    }
  }
  return result;
}

}  // namespace atoll
