#include "server/members/offence_tracker.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

constexpr uint8_t kRejected =
    static_cast<uint8_t>(Offence::kNotFinite) | static_cast<uint8_t>(Offence::kReplayed);

std::string Why(const OffenderOptions& options, const OffenceRecord& known, const RoundRecord& record) {
  return absl::StrFormat(
      "by rule (offenders.ban_after %d of %d): %d of its last %d rounds were offences (%s), the last one in "
      "version %d: %s",
      options.ban_after, options.within, known.recent(), known.rounds(), OffenceNames(known.kinds()),
      record.version.value(), Evidence(known.last()));
}

}  // namespace

void OffenceTracker::Rejected(FragmentId fragment, const WorkerName& worker, Offence offence) {
  rejected_[fragment][worker] |= static_cast<uint8_t>(offence);
}

std::vector<ContributionAudit> OffenceTracker::Audit(const OffenderOptions& options, FragmentId fragment,
                                                     const std::vector<Contribution>& contributions,
                                                     const MergeFindings& findings) const {
  std::vector<WorkerName> workers;
  std::vector<double> norms;
  for (const Contribution& contribution : contributions) {
    workers.push_back(contribution.key.worker);
    norms.push_back(contribution.norm);
  }
  std::vector<ContributionAudit> audits = AuditRound(options, workers, norms, findings);
  const auto rejected = rejected_.find(fragment);
  if (rejected == rejected_.end()) return audits;
  for (const auto& [worker, offences] : rejected->second) {
    auto known = std::ranges::find(audits, worker, &ContributionAudit::worker);
    if (known == audits.end()) known = audits.insert(audits.end(), ContributionAudit{.worker = worker});
    known->offences |= offences;
  }
  return audits;
}

std::vector<OffenceTracker::Ban> OffenceTracker::Note(const OffenderOptions& options,
                                                      const RoundRecord& record) {
  std::map<WorkerName, ContributionAudit> parts;
  for (const Contribution& contribution : record.contributions) {
    parts[contribution.key.worker].worker = contribution.key.worker;
  }
  for (const ContributionAudit& audit : record.audits) {
    parts[audit.worker] = audit;
    if ((audit.offences & kRejected) != 0) rejected_[record.fragment].erase(audit.worker);
  }
  const auto offends = [](const auto& part) { return part.second.offences != 0; };
  const bool conclusive = 2 * std::ranges::count_if(parts, offends) <= static_cast<ptrdiff_t>(parts.size());
  std::vector<Ban> bans;
  for (auto& [worker, audit] : parts) {
    if (record.version <= forgiven_until(worker)) continue;
    if (!conclusive) audit.offences = 0;
    OffenceRecord& known = records_[worker];
    known.Note(audit, options.within);
    if (audit.offences == 0 || options.ban_after == 0 || known.recent() < options.ban_after) continue;
    bans.push_back({.worker = worker, .why = Why(options, known, record)});
  }
  return bans;
}

void OffenceTracker::Forgive(const WorkerName& worker, Version until) {
  if (until == Version()) return;
  forgiven_[worker] = until;
  if (const auto it = records_.find(worker); it != records_.end()) it->second.Forgive();
}

Version OffenceTracker::forgiven_until(const WorkerName& worker) const {
  const auto it = forgiven_.find(worker);
  return it == forgiven_.end() ? Version() : it->second;
}

void OffenceTracker::Forget(const WorkerName& worker) {
  records_.erase(worker);
  forgiven_.erase(worker);
  for (auto& [fragment, rejected] : rejected_) rejected.erase(worker);
}

void OffenceTracker::BeginEpoch() {
  rejected_.clear();
  for (auto& [worker, record] : records_) record.Forgive();
}

const OffenceRecord& OffenceTracker::Of(const WorkerName& worker) const {
  static const OffenceRecord kNone;
  const auto it = records_.find(worker);
  return it == records_.end() ? kNone : it->second;
}

}  // namespace atl
