#ifndef ATOLL_CORE_OFFENCES_H_
#define ATOLL_CORE_OFFENCES_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "core/run_options.h"

namespace atl {

/// Kinds of offences of a contribution. A set of them is a sum of bits; stored in round records.
enum class Offence : uint8_t {
  kNotFinite = 1,  // NaN, infinity, or too large to merge in float32: rejected, it never counted
  kNorm = 2,       // offenders.norm times the median norm of the round, or more
  kDistance = 4,   // offenders.distance times the median distance from the merge, or more
  kDirection = 8,  // cosine with the merge below offenders.cosine
  kReplayed = 16,  // the bytes of an earlier contribution of its worker: rejected, it never counted
};
inline constexpr std::array<Offence, 5> kOffences = {Offence::kNotFinite, Offence::kNorm, Offence::kDistance,
                                                     Offence::kDirection, Offence::kReplayed};

/// "not_finite", "norm", "distance", "direction", "replayed": labels of metrics, words of events.
std::string_view OffenceName(Offence offence);
/// "norm, direction"; empty: none.
std::string OffenceNames(uint8_t offences);

/// The audit of one worker's contribution to one round.
struct ContributionAudit {
  WorkerName worker = {};
  uint8_t offences = 0;   // bits of Offence
  bool measured = false;  // cosine and distance are
  double norm = 0;        // over the median norm of the round
  double guard = 1;       // what the norm guard scaled it by
  double clip = 1;        // what centered_clip's last pass scaled its distance from the center by
  double distance = 0;    // from the merge, over the median distance
  double cosine = 0;      // with the merge
  friend bool operator==(const ContributionAudit&, const ContributionAudit&) = default;
};

/// What a merge knows of its inputs, all in the order of the inputs.
struct MergeFindings {
  std::vector<double> guard = {};
  std::vector<double> clip = {};
  std::vector<double> cosines = {};  // empty: not measured
  std::vector<double> distances = {};
};

/// The audit of a round: every contribution if measured, else those that were scaled or are offences. `norms`
/// as recorded. Medians ignore zeros. With fewer than three contributions it is impossible to tell which one
/// is wrong, so only measurements are noted, not offences.
std::vector<ContributionAudit> AuditRound(const OffenderOptions& options, std::span<const WorkerName> workers,
                                          std::span<const double> norms, const MergeFindings& findings);

/// "norm 98.2 times the median, cosine -0.93 with the merge": what the offences of this audit rest on.
std::string Evidence(const ContributionAudit& audit);

/// A worker's offences among its last rounds. Pure state.
class OffenceRecord {
 public:
  /// Adds one round in which the worker took part or was rejected. `within`: number of rounds to examine.
  void Note(const ContributionAudit& audit, uint32_t within);
  /// Clears the recent offences; totals stay.
  void Forgive() { window_.clear(); }

  uint32_t recent() const;  // rounds with an offence among those looked at
  uint32_t rounds() const { return static_cast<uint32_t>(window_.size()); }
  uint64_t total(Offence offence) const;
  bool any() const;
  const ContributionAudit& last() const { return last_; }
  /// Offences that the recent ones were, together.
  uint8_t kinds() const;

 private:
  std::deque<uint8_t> window_;
  std::array<uint64_t, kOffences.size()> totals_{};
  ContributionAudit last_;
};

}  // namespace atl

#endif  // ATOLL_CORE_OFFENCES_H_
