#ifndef ATOLL_TESTS_INTEGRATION_CRASH_SERIAL_MODEL_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_SERIAL_MODEL_H_

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "core/contribution.h"
#include "tests/integration/crash/promises.h"
#include "tests/integration/crash/synthetic_run.h"

namespace atl {

/// The run computed a second time, outside the coordinator and without its code: one plain loop per version
/// over the contributions that its record names. Remembers every version, so that a restore can go back to
/// any.
class SerialModel {
 public:
  explicit SerialModel(const SyntheticRun& run);

  /// Computes the versions of these records (ascending, from 1, each list longer than the last one) and
  /// compares them with the hashes in the records and with what was pulled. `checkpoints`: name to version,
  /// for records of restores. DataLoss naming what is wrong: a version that differs, a contribution that
  /// counted twice.
  absl::Status Follow(const std::vector<RoundRecord>& records,
                      const std::map<std::string, Version>& checkpoints,
                      const std::map<Promises::Published, ContentHash>& published);

  const SyntheticRun& run() const { return run_; }
  Version head() const { return Version(versions_.size() - 1); }
  const std::vector<float>& theta() const { return versions_.back().theta; }
  const std::vector<float>& momentum() const { return versions_.back().momentum; }
  /// What made each version.
  const std::vector<RoundRecord>& records() const { return records_; }

 private:
  struct Contents {
    std::vector<float> theta;
    std::vector<float> momentum;
  };
  absl::Status Step(const RoundRecord& record, const std::map<std::string, Version>& checkpoints);
  Contents Average(const RoundRecord& record) const;

  const SyntheticRun& run_;
  std::vector<Contents> versions_;
  std::vector<RoundRecord> records_;
  std::set<std::tuple<Epoch, Version, WorkerName>> counted_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_SERIAL_MODEL_H_
