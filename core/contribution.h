#ifndef ATOLL_CORE_CONTRIBUTION_H_
#define ATOLL_CORE_CONTRIBUTION_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/content_hash.h"
#include "common/ids.h"
#include "core/offences.h"
#include "core/run_options.h"

namespace atl {

/// The largest plausible training or evaluation loss, in nats per token. An untrained model has
/// ln(vocabulary), about 11; cross entropy is never negative.
inline constexpr double kLargestLoss = 1e4;
/// Also false for values that are not finite.
inline bool IsPlausibleLoss(double loss) { return loss >= 0 && loss <= kLargestLoss; }

/// The key of a contribution. (worker, fragment, base) counts once; `sequence` distinguishes partial
/// contributions on one base from the final one (always 0 in blocking rounds). Ordered as summed: by
/// fragment, base, worker name, sequence.
struct ContributionKey {
  Epoch epoch = {};
  FragmentId fragment = {};
  Version base = {};
  WorkerName worker = {};
  uint32_t sequence = 0;
  friend auto operator<=>(const ContributionKey&, const ContributionKey&) = default;
};

/// 128-bit content hash (XXH3-128 tree, common/content_hash.h): integrity, not secrecy.
struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};
/// As that of a Hash128.
inline std::string ToHex(const ContentHash& hash) {
  return ToHex(Hash128{.low = hash.low, .high = hash.high});
}

/// One worker's encoded pseudo-gradient, as accepted and staged. The payload is stored separately.
struct Contribution {
  ContributionKey key = {};
  Incarnation incarnation = {};
  CodecKind codec = CodecKind::kFp32;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc32c = 0;                       // of the whole payload
  uint64_t tokens = 0;                               // trained on, capped by what was assigned
  uint32_t steps = 0;                                // inner steps behind it
  std::optional<uint32_t> partition = std::nullopt;  // of the shared data; none: local data
  uint64_t samples_consumed = 0;                     // position in the partition after it
  double norm = 0;       // L2 of the decoded pseudo-gradient (float64 over fixed blocks)
  double mean_loss = 0;  // mean training loss over its steps, nats per token
  friend bool operator==(const Contribution&, const Contribution&) = default;
};

/// The inputs of one outer step. Together with version `base` and the contributions' payloads it rebuilds
/// version base+1 bit for bit.
struct RoundRecord {
  Epoch epoch = {};
  FragmentId fragment = {};
  Version version = {};                          // the version this round made
  uint64_t outer_steps = 0;                      // that the contents have seen, this one included
  uint64_t config_version = 0;                   // which recorded configuration was in force
  OuterOptions outer = {};                       // outer step as applied
  MergeOptions merge = {};                       // as applied
  std::vector<Contribution> contributions = {};  // in summation order
  std::vector<float> weights = {};               // normalised, one per contribution
  uint64_t committed_tokens = 0;                 // over the whole run, after this round
  int64_t closed_unix_ns = 0;                    // wall clock, for people
  std::string close_reason = {};                 // from the round policy
  ContentHash parameters = {};                   // of theta after the step
  ContentHash state = {};                        // of the outer optimizer's state after the step
  ContentHash published = {};                    // of the published encoding, what a pull decodes to
  /// How contributions compare with the merge, and who was rejected meanwhile (core/offences.h). Not needed
  /// to rebuild the version.
  std::vector<ContributionAudit> audits = {};
  double noise_multiplier = 0;  // that privacy asked of the workers (core/privacy.h); 0: none
  friend bool operator==(const RoundRecord&, const RoundRecord&) = default;
};

}  // namespace atl

#endif  // ATOLL_CORE_CONTRIBUTION_H_
