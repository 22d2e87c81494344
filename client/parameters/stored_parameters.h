#ifndef ATOLL_CLIENT_PARAMETERS_STORED_PARAMETERS_H_
#define ATOLL_CLIENT_PARAMETERS_STORED_PARAMETERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/run_options.h"

// Tensors as the admin port streams them (Admin.ReadParameters): of a stored version, or of a checkpoint.

namespace atl {

/// Which tensors to read. Neither a version nor a checkpoint: the newest version.
struct ParametersQuery {
  std::optional<uint64_t> version = std::nullopt;
  std::string checkpoint = {};
  bool outer_state = false;

  bool newest() const { return !version && checkpoint.empty(); }
};

/// The tensors of one version, and what they are of.
struct StoredParameters {
  std::string run_id;
  uint64_t epoch = 0;
  RunOptions options;
  Manifest manifest;
  std::vector<FragmentLayout> layouts;
  std::vector<uint64_t> versions;  // by fragment, as the next
  std::vector<std::vector<float>> parameters;
  std::vector<std::string> state_names;                // of the outer optimizer
  std::vector<std::vector<std::vector<float>>> state;  // [number of the name][fragment]
};

/// Sees the run before memory is taken for its tensors, and may reject it.
using CheckRun = std::function<absl::Status(const RunOptions&)>;

}  // namespace atl

#endif  // ATOLL_CLIENT_PARAMETERS_STORED_PARAMETERS_H_
