#ifndef ATOLL_TESTS_INTEGRATION_REFERENCE_H_
#define ATOLL_TESTS_INTEGRATION_REFERENCE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/contribution.h"
#include "nlohmann/json.hpp"
#include "tests/integration/cluster.h"

// Reads what a run of real programs left on disk, and runs the programs of tests/reference: plain PyTorch
// with no code of ours.

namespace atl {

/// Whether /usr/bin/python3 has PyTorch and NumPy: scripts/setup.sh installs them.
bool HavePyTorch();

std::vector<float> ReadFloats(const std::string& path);
/// |ours - theirs| / |theirs|.
double RelativeError(const std::vector<float>& ours, const std::vector<float>& theirs);

/// A finished run of one fragment, read from its data directory while no process has it open.
struct RunOnDisk {
  std::map<uint64_t, std::vector<float>> versions;             // those whose tensors are stored
  std::vector<RoundRecord> rounds;                             // of versions 1, 2, ...
  std::map<uint64_t, std::vector<std::vector<float>>> pushed;  // of a version: its contributions, decoded
};
absl::StatusOr<RunOnDisk> ReadRun(const std::string& data_dir);

/// Writes the run's versions and contributions to files, and returns the options of tests/reference/replay.py
/// for them: TinyConfig's model, and a constant learning rate. NotFound when a version or a contribution was
/// not kept.
absl::StatusOr<nlohmann::json> ReplayOptions(const Cluster& cluster, const RunOnDisk& run);

/// Runs `script` of tests/reference on `options`; returns its RESULT.json.
absl::StatusOr<nlohmann::json> RunReference(const Cluster& cluster, const std::string& script,
                                            const nlohmann::json& options);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_REFERENCE_H_
