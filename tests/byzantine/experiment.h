#ifndef ATOLL_TESTS_BYZANTINE_EXPERIMENT_H_
#define ATOLL_TESTS_BYZANTINE_EXPERIMENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "tests/byzantine/attack.h"

namespace atl::byzantine {

/// Eight workers, of which f are Byzantine, train the same small language model on batches drawn from one
/// text through a real coordinator on a RocksDB store; the honest ones are the same in every experiment.
/// Blocking rounds, Nesterov outside, Adam inside.
struct Experiment {
  MergeOptions merge = {};
  OffenderOptions offenders = {};
  Attack attack = Attack::kNone;
  uint32_t f = 0;
  uint32_t rounds = 40;
  PrivacyOptions privacy = {};
};

inline constexpr uint32_t kWorkers = 8;

struct Outcome {
  double loss = 0;  // of the last version on held-out text, nats per character; NaN: not finite any more
  std::map<std::string, uint64_t> banned;    // by rule: worker, version after which
  std::map<std::string, uint32_t> offences;  // rounds with an offence, among the last ones
  uint64_t rejected = 0;                     // contributions
  std::string ban_event;                     // the message of the first one
};

absl::StatusOr<Outcome> Run(const Experiment& experiment, const std::string& folder);

/// Worker i of kWorkers; the last f attack.
std::string NameOf(uint32_t i);

}  // namespace atl::byzantine

#endif  // ATOLL_TESTS_BYZANTINE_EXPERIMENT_H_
