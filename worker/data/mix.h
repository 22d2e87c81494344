#ifndef ATOLL_WORKER_DATA_MIX_H_
#define ATOLL_WORKER_DATA_MIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/mixture_description.h"

namespace atl {

/// A dataset folder, and its share relative to the others, as a decimal number.
struct WeightedFolder {
  std::string folder;
  std::string weight;
};

/// FOLDER=WEIGHT or FOLDER:WEIGHT; the last = or : counts. InvalidArgument if one of the two is missing.
absl::StatusOr<WeightedFolder> ParseWeightedFolder(const std::string& text);

/// Makes `out` a folder that is a mixture of these datasets. Copies no token: workers read the datasets where
/// they are. The description names them from `out` on, so that all folders can move together. Errors as for
/// Dataset::Open and OutputFolder; InvalidArgument for fewer than two datasets, a dataset that is named
/// twice, different tokenizers, a mixture among them, and a weight that WholeWeights rejects.
absl::StatusOr<MixtureDescription> Mix(const std::vector<WeightedFolder>& folders, const std::string& out);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_MIX_H_
