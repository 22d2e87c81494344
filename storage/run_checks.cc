#include "storage/run_checks.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace atl {
namespace {

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

absl::Status CheckIdentity(const RunIdentity& identity) {
  if (identity.run_id.empty()) return absl::InvalidArgumentError("identity: run_id is empty");
  if (identity.shards < 1 || identity.shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("identity: shards is %d; allowed are 1 to %d", identity.shards, kMaxShards));
  }
  if (identity.chunk_elements < 1 || identity.chunk_elements > kMaxChunkElements) {
    return absl::InvalidArgumentError(absl::StrFormat("identity: chunk_elements is %d; allowed are 1 to %d",
                                                      identity.chunk_elements, kMaxChunkElements));
  }
  return absl::OkStatus();
}

absl::Status CheckWorkerName(const WorkerName& name) {
  const bool fits = !name.empty() && name.size() <= kMaxWorkerName && IsLowerAlphanumeric(name.front()) &&
                    std::all_of(name.begin(), name.end(),
                                [](char c) { return IsLowerAlphanumeric(c) || c == '.' || c == '-'; });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "worker name \"%s\": at most %d of a-z, 0-9, '.' and '-', beginning with a letter or digit",
      absl::CHexEscape(name.substr(0, kMaxWorkerName)), kMaxWorkerName));
}

absl::Status CheckTensors(FragmentId fragment, uint64_t elements, size_t state_vectors,
                          const FragmentTensorsView& tensors) {
  if (tensors.state.size() != state_vectors) {
    return absl::InvalidArgumentError(absl::StrFormat("fragment %d: %d state vectors, expected %d",
                                                      fragment.value(), tensors.state.size(), state_vectors));
  }
  if (tensors.parameters.size() != elements) {
    return absl::InvalidArgumentError(absl::StrFormat("fragment %d: %d parameters, expected %d",
                                                      fragment.value(), tensors.parameters.size(), elements));
  }
  for (const auto& vector : tensors.state) {
    if (vector.size() == elements) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("fragment %d: a state vector of %d elements, expected %d", fragment.value(),
                        vector.size(), elements));
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const StoredEntry& stored, const FragmentTensorsTarget& target) {
  FragmentTensorsView view{.parameters = target.parameters, .state = {}};
  for (const auto& vector : target.state) view.state.emplace_back(vector);
  return CheckTensors(stored.fragment, stored.elements, stored.state_vectors, view);
}

absl::Status CheckRange(const StoredEntry& stored, const VectorPosition& from, uint64_t elements) {
  const bool inside = from.vector <= stored.state_vectors && from.first <= stored.elements &&
                      elements <= stored.elements - from.first;
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "read of fragment %d: %d elements of vector %d from element %d on; stored are %d vectors of %d",
      stored.fragment.value(), elements, from.vector, from.first, stored.state_vectors + 1, stored.elements));
}

}  // namespace atl
