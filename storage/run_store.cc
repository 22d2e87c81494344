#include "storage/run_store.h"

#include "common/status.h"

namespace atl {

absl::StatusOr<FragmentTensors> VersionSource::ReadVersion(const FragmentLayout& layout, Version version) {
  ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, Stored(layout.id));
  FragmentTensors tensors;
  tensors.parameters.resize(stored.elements);
  tensors.state.assign(stored.state_vectors, std::vector<float>(stored.elements));
  FragmentTensorsTarget target{.parameters = tensors.parameters, .state = {}};
  for (std::vector<float>& vector : tensors.state) target.state.emplace_back(vector);
  ATOLL_RETURN_IF_ERROR(ReadInto(layout, version, target));
  return tensors;
}

}  // namespace atl
