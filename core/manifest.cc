#include "core/manifest.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/status.h"

namespace atl {
namespace {

absl::Status ValidateName(const TensorSpec& tensor, size_t index) {
  if (tensor.name.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("manifest: tensor %d has no name", index));
  }
  if (tensor.name.size() > kMaxTensorName) {
    return absl::InvalidArgumentError(
        absl::StrFormat("manifest: the name of tensor %d has %d bytes, %d are allowed", index,
                        tensor.name.size(), kMaxTensorName));
  }
  // The canonical text that is hashed separates fields by spaces and tensors by line ends.
  const bool printable =
      std::all_of(tensor.name.begin(), tensor.name.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!printable) {
    return absl::InvalidArgumentError(
        absl::StrFormat("manifest: the name of tensor %d has a character outside printable ASCII", index));
  }
  return absl::OkStatus();
}

/// The tensor's number of elements, checked against overflow.
absl::StatusOr<uint64_t> CheckedElements(const TensorSpec& tensor) {
  if (tensor.shape.size() > kMaxTensorRank) {
    return absl::InvalidArgumentError(absl::StrFormat("manifest: tensor %s has %d dimensions, %d are allowed",
                                                      tensor.name, tensor.shape.size(), kMaxTensorRank));
  }
  uint64_t product = 1;
  for (const int64_t dimension : tensor.shape) {
    if (dimension <= 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("manifest: tensor %s has a dimension of %d in [%s]; it must be positive",
                          tensor.name, dimension, absl::StrJoin(tensor.shape, ", ")));
    }
    if (static_cast<uint64_t>(dimension) > kMaxRunElements / product) {
      return absl::InvalidArgumentError(
          absl::StrFormat("manifest: tensor %s of shape [%s] has more than %d elements", tensor.name,
                          absl::StrJoin(tensor.shape, ", "), kMaxRunElements));
    }
    product *= static_cast<uint64_t>(dimension);
  }
  return product;
}

}  // namespace

uint64_t TensorSpec::elements() const {
  uint64_t product = 1;
  for (const int64_t dimension : shape) product *= static_cast<uint64_t>(dimension);
  return product;
}

uint64_t Manifest::elements() const {
  uint64_t sum = 0;
  for (const TensorSpec& tensor : tensors) sum += tensor.elements();
  return sum;
}

absl::Status ValidateManifest(const Manifest& manifest) {
  if (manifest.tensors.empty() || manifest.tensors.size() > kMaxTensors) {
    return absl::InvalidArgumentError(absl::StrFormat("manifest: %d tensors; between 1 and %d are allowed",
                                                      manifest.tensors.size(), kMaxTensors));
  }
  std::set<std::string_view> names;
  uint64_t total = 0;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorSpec& tensor = manifest.tensors[i];
    ATOLL_RETURN_IF_ERROR(ValidateName(tensor, i));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrFormat("manifest: two tensors are named %s", tensor.name));
    }
    ATOLL_ASSIGN_OR_RETURN(const uint64_t elements, CheckedElements(tensor));
    total += elements;  // both are at most 2^40, so this cannot overflow before the check
    if (total > kMaxRunElements) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "manifest: with tensor %s the model has more than %d elements", tensor.name, kMaxRunElements));
    }
  }
  return absl::OkStatus();
}

std::string ManifestHash(const Manifest& manifest) {
  std::string text;
  for (const TensorSpec& tensor : manifest.tensors) {
    absl::StrAppend(&text, tensor.name);
    for (const int64_t dimension : tensor.shape) absl::StrAppend(&text, " ", dimension);
    absl::StrAppend(&text, tensor.embedding ? " embedding\n" : "\n");
  }
  return Sha256Hex(text);
}

}  // namespace atl
