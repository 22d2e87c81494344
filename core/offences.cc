#include "core/offences.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/median.h"

namespace atl {
namespace {

constexpr size_t kFewest = 3;

uint8_t Bit(Offence offence) { return static_cast<uint8_t>(offence); }
bool Has(uint8_t offences, Offence offence) { return (offences & Bit(offence)) != 0; }

double Ratio(double value, double median) { return median > 0 ? value / median : 0; }

uint8_t Judge(const OffenderOptions& options, const ContributionAudit& audit) {
  uint8_t offences = 0;
  if (audit.norm >= options.norm) offences |= Bit(Offence::kNorm);
  if (!audit.measured) return offences;
  if (audit.distance >= options.distance) offences |= Bit(Offence::kDistance);
  if (audit.cosine < options.cosine) offences |= Bit(Offence::kDirection);
  return offences;
}

}  // namespace

std::string_view OffenceName(Offence offence) {
  switch (offence) {
    case Offence::kNotFinite:
      return "not_finite";
    case Offence::kNorm:
      return "norm";
    case Offence::kDistance:
      return "distance";
    case Offence::kDirection:
      return "direction";
    case Offence::kReplayed:
      return "replayed";
  }
  return "unknown";
}

std::string OffenceNames(uint8_t offences) {
  std::vector<std::string> names;
  for (const Offence offence : kOffences) {
    if (Has(offences, offence)) names.emplace_back(OffenceName(offence));
  }
  return absl::StrJoin(names, ", ");
}

std::vector<ContributionAudit> AuditRound(const OffenderOptions& options, std::span<const WorkerName> workers,
                                          std::span<const double> norms, const MergeFindings& findings) {
  const bool measured = !findings.cosines.empty();
  const double median_norm = MedianOfNonZero({norms.begin(), norms.end()});
  const double median_distance = MedianOfNonZero(findings.distances);
  std::vector<ContributionAudit> audits;
  for (size_t i = 0; i < workers.size(); ++i) {
    ContributionAudit audit{.worker = workers[i],
                            .measured = measured,
                            .norm = Ratio(norms[i], median_norm),
                            .guard = findings.guard[i],
                            .clip = findings.clip[i]};
    if (measured) {
      audit.distance = Ratio(findings.distances[i], median_distance);
      audit.cosine = findings.cosines[i];
    }
    if (workers.size() >= kFewest) audit.offences = Judge(options, audit);
    const bool scaled = audit.guard < 1 || audit.clip < 1;
    if (measured || scaled || audit.offences != 0) audits.push_back(std::move(audit));
  }
  return audits;
}

std::string Evidence(const ContributionAudit& audit) {
  std::vector<std::string> parts;
  if (Has(audit.offences, Offence::kNotFinite)) parts.emplace_back("values that are not finite");
  if (Has(audit.offences, Offence::kNorm)) {
    parts.push_back(absl::StrFormat("norm %.3g times the median", audit.norm));
  }
  if (Has(audit.offences, Offence::kDistance)) {
    parts.push_back(absl::StrFormat("%.3g times the median distance from the merge", audit.distance));
  }
  if (Has(audit.offences, Offence::kDirection)) {
    parts.push_back(absl::StrFormat("cosine %.2f with the merge", audit.cosine));
  }
  if (Has(audit.offences, Offence::kReplayed)) parts.emplace_back("the bytes of an earlier contribution");
  return absl::StrJoin(parts, ", ");
}

void OffenceRecord::Note(const ContributionAudit& audit, uint32_t within) {
  for (size_t i = 0; i < kOffences.size(); ++i) {
    if (Has(audit.offences, kOffences[i])) ++totals_[i];
  }
  last_ = audit;
  window_.push_back(audit.offences);
  while (window_.size() > within) window_.pop_front();
}

uint32_t OffenceRecord::recent() const {
  return static_cast<uint32_t>(std::ranges::count_if(window_, [](uint8_t bits) { return bits != 0; }));
}

uint64_t OffenceRecord::total(Offence offence) const {
  const auto at = std::ranges::find(kOffences, offence);
  return totals_[static_cast<size_t>(at - kOffences.begin())];
}

bool OffenceRecord::any() const {
  return std::ranges::any_of(totals_, [](uint64_t count) { return count > 0; });
}

uint8_t OffenceRecord::kinds() const {
  uint8_t kinds = 0;
  for (const uint8_t bits : window_) kinds |= bits;
  return kinds;
}

}  // namespace atl
