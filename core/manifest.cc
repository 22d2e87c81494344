#include "core/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/status.h"

namespace atl {
namespace {

/// The canonical text that is hashed separates fields by spaces and tensors by line ends.
bool IsWord(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

absl::Status ValidateName(const TensorSpec& tensor, size_t index) {
  if (tensor.name.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("manifest: tensor %d has no name", index));
  }
  if (tensor.name.size() > kMaxTensorName) {
    return absl::InvalidArgumentError(
        absl::StrFormat("manifest: the name of tensor %d has %d bytes, %d are allowed", index,
                        tensor.name.size(), kMaxTensorName));
  }
  if (!IsWord(tensor.name)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("manifest: the name of tensor %d, '%s', has a space or a character outside printable "
                        "ASCII; rename it",
                        index, absl::CHexEscape(tensor.name)));
  }
  if (tensor.name == kReservedTensorName) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "manifest: tensor %d is named %s, which safetensors files reserve; rename it", index, tensor.name));
  }
  return absl::OkStatus();
}

absl::Status ValidateBase(const std::string& fingerprint) {
  if (fingerprint.empty()) return absl::OkStatus();
  const size_t size = fingerprint.size();
  if (size >= kMinBaseFingerprint && size <= kMaxBaseFingerprint && IsWord(fingerprint)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("manifest: base_fingerprint has %d bytes; allowed: none, or %d to %d printable ASCII "
                      "characters without spaces, for example a SHA-256 in hexadecimal",
                      size, kMinBaseFingerprint, kMaxBaseFingerprint));
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

std::string ShapeText(const TensorSpec& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ", "), "]");
}

const char* KindText(const TensorSpec& tensor) {
  if (tensor.averaged) return "an averaged tensor";
  return tensor.embedding ? "an embedding" : "an ordinary parameter";
}

/// Of two tensors of one name.
std::string TensorDifference(const TensorSpec& run, const TensorSpec& other) {
  if (other.shape != run.shape) {
    return absl::StrFormat("tensor '%s' has shape %s, and %s in the run", run.name, ShapeText(other),
                           ShapeText(run));
  }
  if (other.averaged != run.averaged) {
    return absl::StrFormat("tensor '%s' is %s, and %s in the run", run.name, KindText(other), KindText(run));
  }
  if (other.embedding == run.embedding) return "";
  return absl::StrFormat("tensor '%s' is %san embedding, and is %sone in the run", run.name,
                         other.embedding ? "" : "not ", run.embedding ? "" : "not ");
}

/// One name is the other with something in front: "model.wte" and "module.model.wte".
bool EndsAlike(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return a.size() < b.size() && b.ends_with(a) && b[b.size() - a.size() - 1] == '.';
}

/// The tensor that `other` has where the run has its tensor `index`; null: none of the likely ones.
const TensorSpec* InItsPlace(const Manifest& run, size_t index, const Manifest& other) {
  std::set<std::string_view> known;
  for (const TensorSpec& tensor : run.tensors) known.insert(tensor.name);
  for (const TensorSpec& tensor : other.tensors) {
    if (!known.contains(tensor.name) && EndsAlike(tensor.name, run.tensors[index].name)) return &tensor;
  }
  if (index >= other.tensors.size()) return nullptr;
  const TensorSpec& there = other.tensors[index];
  return !known.contains(there.name) && there.shape == run.tensors[index].shape ? &there : nullptr;
}

std::string MissingTensor(const Manifest& run, size_t index, const Manifest& other) {
  const TensorSpec& tensor = run.tensors[index];
  std::string text =
      absl::StrFormat("tensor '%s' is missing, and has shape %s in the run", tensor.name, ShapeText(tensor));
  if (const TensorSpec* const there = InItsPlace(run, index, other)) {
    absl::StrAppend(&text, "; this worker has '", there->name, "' of shape ", ShapeText(*there),
                    " in its place");
  } else if (tensor.averaged) {
    absl::StrAppend(&text,
                    ", which averages it: this worker must exchange its buffers too; in Python "
                    "buffers=\"mean\"");
  }
  return text;
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

const TensorSpec* Manifest::FirstAveraged() const {
  const auto found = std::ranges::find_if(tensors, &TensorSpec::averaged);
  return found == tensors.end() ? nullptr : &*found;
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
    if (tensor.embedding && tensor.averaged) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "manifest: tensor %s is both an embedding and averaged; choose one of them", tensor.name));
    }
    ATOLL_ASSIGN_OR_RETURN(const uint64_t elements, CheckedElements(tensor));
    total += elements;  // both are at most 2^40, so this cannot overflow before the check
    if (total > kMaxRunElements) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "manifest: with tensor %s the model has more than %d elements", tensor.name, kMaxRunElements));
    }
  }
  return ValidateBase(manifest.base_fingerprint);
}

std::string ManifestHash(const Manifest& manifest) {
  std::string text;
  for (const TensorSpec& tensor : manifest.tensors) {
    absl::StrAppend(&text, tensor.name);
    for (const int64_t dimension : tensor.shape) absl::StrAppend(&text, " ", dimension);
    absl::StrAppend(&text, tensor.embedding ? " embedding" : tensor.averaged ? " averaged" : "", "\n");
  }
  if (!manifest.base_fingerprint.empty()) absl::StrAppend(&text, "base ", manifest.base_fingerprint, "\n");
  return Sha256Hex(text);
}

std::string DifferenceFromRun(const Manifest& run, const Manifest& other) {
  std::map<std::string_view, const TensorSpec*> others;
  for (const TensorSpec& tensor : other.tensors) others.emplace(tensor.name, &tensor);
  std::set<std::string_view> shared;
  for (size_t i = 0; i < run.tensors.size(); ++i) {
    const TensorSpec& tensor = run.tensors[i];
    const auto found = others.find(tensor.name);
    if (found == others.end()) return MissingTensor(run, i, other);
    std::string difference = TensorDifference(tensor, *found->second);
    if (!difference.empty()) return difference;
    shared.insert(tensor.name);
  }
  for (const TensorSpec& tensor : other.tensors) {
    if (shared.contains(tensor.name)) continue;
    return absl::StrFormat("%stensor '%s' of shape %s is not in the run", tensor.averaged ? "averaged " : "",
                           tensor.name, ShapeText(tensor));
  }
  // The same tensors; their order is that of the parameters.
  for (size_t i = 0; i < std::min(run.tensors.size(), other.tensors.size()); ++i) {
    if (run.tensors[i].name == other.tensors[i].name) continue;
    return absl::StrFormat("tensor %d is '%s', and '%s' in the run: the order differs", i,
                           other.tensors[i].name, run.tensors[i].name);
  }
  if (other.base_fingerprint == run.base_fingerprint) return "";
  const auto text = [](const std::string& fingerprint) { return fingerprint.empty() ? "none" : fingerprint; };
  return absl::StrFormat("the frozen parameters differ: base_fingerprint is %s, and %s in the run",
                         text(other.base_fingerprint), text(run.base_fingerprint));
}

}  // namespace atl
