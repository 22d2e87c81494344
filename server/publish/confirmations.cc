#include "server/publish/confirmations.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/signature.h"
#include "common/status.h"

namespace atl {
namespace {

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
      author.worker, confirmation.version.value(), confirmation.fragment.value(), ToHex(published),
      ToHex(confirmation.published));
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
  if (static_cast<size_t>(std::distance(first, end)) <= kVersionsRemembered) return;
  diverged_.erase(first->first);
  published_.erase(first);
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

void Confirmations::Forget(const WorkerName& worker) {
  const MutexLock lock(&mutex_);
  newest_.erase(worker);
  divergences_.erase(worker);
}

void Confirmations::Remember(const SignedConfirmation& one) {
  const MutexLock lock(&mutex_);
  Signers& signers = shown_[one.confirmation.version][one.confirmation.fragment];
  if (signers.insert_or_assign(one.worker, one).second) ++shown_count_;
  while (shown_count_ > kShown && shown_.size() > 1) {
    for (const auto& [fragment, dropped] : shown_.begin()->second) shown_count_ -= dropped.size();
    shown_.erase(shown_.begin());
  }
}

absl::StatusOr<Confirmations::Signers> Confirmations::SignersOf(const RunIdentity& run, FragmentId fragment,
                                                                Version version, const KeyOf& key_of) {
  Signers signers;
  {
    const MutexLock lock(&mutex_);
    if (const auto found = shown_.find(version); found != shown_.end()) {
      if (const auto of = found->second.find(fragment); of != found->second.end()) signers = of->second;
    }
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfirmationEntry> kept, store_->Confirmations(fragment, version));
  if (kept.size() <= signers.size()) return signers;
  const auto record = store_->ReadRound(fragment, version);
  for (const ConfirmationEntry& entry : kept) {
    if (signers.contains(entry.worker)) continue;
    SignedConfirmation one{.worker = entry.worker,
                           .public_key = key_of(entry.worker),
                           .epoch = record.ok() ? record->epoch : run.epoch,
                           .confirmation = {.fragment = fragment,
                                            .version = version,
                                            .published = entry.published,
                                            .signature = entry.signature}};
    // A worker that lost its state has another key than it signed this with.
    if (!IsSigned(run.run_id, one)) continue;
    Remember(one);
    signers.emplace(entry.worker, std::move(one));
  }
  return signers;
}

ConfirmationQuery Confirmations::Narrowed(ConfirmationQuery query) const {
  const auto stored = store_->Stored(query.fragment);
  const MutexLock lock(&mutex_);
  const auto newest = published_.upper_bound({query.fragment, Version(~uint64_t{0})});
  if (newest == published_.begin() || std::prev(newest)->first.first != query.fragment) {
    query.last = Version(0);
  } else {
    query.last = std::min(query.last, std::prev(newest)->first.second);
  }
  Version oldest = stored.ok() ? stored->versions.front() : query.last;
  if (!shown_.empty()) oldest = std::min(oldest, shown_.begin()->first);
  query.first = std::max(query.first, oldest);
  if (query.after.has_value()) query.first = std::max(query.first, query.after->version);
  return query;
}

absl::StatusOr<ConfirmationPage> Confirmations::Show(const RunIdentity& run, const ConfirmationQuery& asked,
                                                     const KeyOf& key_of) {
  const ConfirmationQuery query = Narrowed(asked);
  const size_t limit =
      query.limit == 0 ? kMaxShownConfirmations : std::min(query.limit, kMaxShownConfirmations);
  ConfirmationPage page{.run_id = run.run_id};
  uint64_t looked_at = 0;
  for (Version version = query.first; version <= query.last; version = Next(version)) {
    if (++looked_at > kVersionsInPage) {
      page.next = {.version = version, .worker = {}};
      return page;
    }
    ATOLL_ASSIGN_OR_RETURN(const Signers signers, SignersOf(run, query.fragment, version, key_of));
    const bool resumes = query.after.has_value() && query.after->version == version;
    auto it = resumes ? signers.upper_bound(query.after->worker) : signers.begin();
    for (; it != signers.end(); ++it) {
      if (page.confirmations.size() == limit) {
        const SignedConfirmation& last = page.confirmations.back();
        page.next = {.version = last.confirmation.version, .worker = last.worker};
        return page;
      }
      page.confirmations.push_back(it->second);
    }
  }
  return page;
}

void Confirmations::Keep(const ConfirmationAuthor& author, std::string_view public_key,
                         const Confirmation& confirmation) {
  Remember({.worker = author.worker,
            .public_key = std::string(public_key),
            .epoch = author.epoch,
            .confirmation = confirmation});
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

bool Confirmations::IsNew(const WorkerName& worker, const Confirmation& confirmation, MonoTime now) {
  const MutexLock lock(&mutex_);
  const VersionKey key(confirmation.fragment, confirmation.version);
  return published_.contains(key) && diverged_[key].insert(worker).second && divergences_[worker].Allow(now);
}

Confirmations::Result Confirmations::Take(const ConfirmationAuthor& author, std::string_view public_key,
                                          std::span<const Confirmation> confirmations, MonoTime now) {
  Result result;
  for (const Confirmation& confirmation : confirmations) {
    const std::optional<ContentHash> published = Hash(confirmation.fragment, confirmation.version);
    const LogFields fields = {{"worker", author.worker}, {"version", confirmation.version.value()}};
    result.verdicts.push_back(JudgeConfirmation(author, public_key, confirmation, published));
    switch (result.verdicts.back()) {
      case ConfirmationVerdict::kValid:
        Keep(author, public_key, confirmation);
        Confirmed(author.worker, confirmation);
        break;
      case ConfirmationVerdict::kDiverged:
        Keep(author, public_key, confirmation);
        result.diverged = true;
        if (IsNew(author.worker, confirmation, now)) {
          result.events.push_back(Divergence(author, confirmation, *published));
        }
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

}  // namespace atl
