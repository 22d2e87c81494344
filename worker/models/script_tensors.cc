#include "worker/models/script_tensors.h"

#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

struct Place {
  std::string name;
  c10::IValue value;
};

/// Appends what a value holds, one level down. Plain values hold no tensors.
void AppendHeld(const Place& place, std::vector<Place>& held) {
  const auto append = [&](const std::string& name, const c10::IValue& value) {
    const bool may_hold =
        value.isTensor() || value.isObject() || value.isList() || value.isTuple() || value.isGenericDict();
    if (may_hold) held.push_back({name, value});
  };
  const auto append_all = [&](const auto& elements) {
    for (size_t i = 0; i < elements.size(); ++i) append(absl::StrCat(place.name, "[", i, "]"), elements[i]);
  };
  if (place.value.isObject()) {
    const c10::ivalue::Object& object = place.value.toObjectRef();
    const std::string prefix = place.name.empty() ? "" : place.name + ".";
    for (size_t i = 0; i < object.slots().size(); ++i) {
      append(prefix + object.type()->getAttributeName(i), object.getSlot(i));
    }
  } else if (place.value.isList()) {
    append_all(place.value.toListRef());
  } else if (place.value.isTuple()) {
    append_all(place.value.toTupleRef().elements());
  } else if (place.value.isGenericDict()) {
    size_t entries = 0;
    for (const auto& entry : place.value.toGenericDict()) {
      append(absl::StrFormat("%s (key %d)", place.name, entries), entry.key());
      append(absl::StrFormat("%s (value %d)", place.name, entries++), entry.value());
    }
  }
}

/// All tensors with memory, each once. A loop instead of recursion: objects may be nested deeply.
std::vector<ScriptTensor> AllTensors(const torch::jit::Module& module) {
  std::vector<ScriptTensor> found;
  std::unordered_set<const void*> seen;
  std::vector<Place> waiting = {{"", c10::IValue(module._ivalue())}};
  while (!waiting.empty()) {
    const Place place = std::move(waiting.back());
    waiting.pop_back();
    if (place.value.isTensor()) {
      const torch::Tensor& values = place.value.toTensor();
      const bool has_memory = values.defined() && values.layout() == torch::kStrided && values.has_storage();
      if (has_memory && seen.insert(values.unsafeGetTensorImpl()).second) {
        found.push_back({place.name, values});
      }
    } else if (!place.value.isObject() || seen.insert(&place.value.toObjectRef()).second) {
      AppendHeld(place, waiting);
    }
  }
  return found;
}

/// Where a tensor lies in memory.
struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool trained = false;
  const ScriptTensor* tensor = nullptr;
};

Extent ExtentOf(const ScriptTensor& tensor, bool trained) {
  const torch::Tensor& values = tensor.values;
  int64_t elements = 1;
  for (int64_t i = 0; i < values.dim(); ++i) elements += (values.size(i) - 1) * values.stride(i);
  const auto begin = reinterpret_cast<uintptr_t>(values.data_ptr());
  return {begin, begin + static_cast<uintptr_t>(elements) * values.itemsize(), trained, &tensor};
}

absl::Status Shared(const Extent& one, const Extent& other) {
  const Extent& parameter = one.trained ? one : other;
  return absl::InvalidArgumentError(absl::StrFormat(
      "parameter '%s' and '%s' share memory but are different tensors; tie them by one nn.Parameter under "
      "both names, or give one of them its own memory with clone()",
      parameter.tensor->name, (one.trained ? other : one).tensor->name));
}

}  // namespace

std::vector<ScriptTensor> TrainedTensors(const torch::jit::Module& module) {
  std::vector<ScriptTensor> found;
  std::unordered_set<const void*> seen;
  for (const auto& parameter : module.named_parameters(/*recurse=*/true)) {
    const bool first = seen.insert(parameter.value.unsafeGetTensorImpl()).second;
    if (first && parameter.value.requires_grad()) found.push_back({parameter.name, parameter.value});
  }
  return found;
}

absl::Status CheckTrainedMemory(const torch::jit::Module& module) {
  const std::vector<ScriptTensor> trained = TrainedTensors(module);
  const std::vector<ScriptTensor> all = AllTensors(module);
  std::unordered_set<const void*> changed;
  std::vector<Extent> extents;
  for (const ScriptTensor& tensor : trained) {
    if (at::has_internal_overlap(tensor.values) == at::MemOverlap::Yes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "parameter '%s' repeats its values, as expand() does; give each its own memory with clone()",
          tensor.name));
    }
    changed.insert(tensor.values.unsafeGetTensorImpl());
    if (tensor.values.numel() > 0) extents.push_back(ExtentOf(tensor, true));
  }
  for (const ScriptTensor& tensor : all) {
    const bool other = !changed.contains(tensor.values.unsafeGetTensorImpl());
    if (other && tensor.values.numel() > 0) extents.push_back(ExtentOf(tensor, false));
  }
  std::ranges::stable_sort(extents, {}, &Extent::begin);
  // Of the extents so far: those that reach furthest.
  Extent any, last_trained;
  for (const Extent& extent : extents) {
    if (extent.begin < last_trained.end) return Shared(last_trained, extent);
    if (extent.trained && extent.begin < any.end) return Shared(extent, any);
    if (extent.end > any.end) any = extent;
    if (extent.trained) last_trained = extent;
  }
  return absl::OkStatus();
}

}  // namespace atl
