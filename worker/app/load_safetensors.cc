#include "worker/app/load_safetensors.h"

#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "core/fragment_plan.h"
#include "core/safetensors.h"

namespace atl {
namespace {

absl::Status CheckTensor(const std::string& path, const TensorSpec& spec, const SafetensorsEntry* entry) {
  if (entry == nullptr) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s has no tensor '%s', which the model has; is it of another configuration?", path, spec.name));
  }
  if (entry->dtype != "F32") {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tensor '%s' is %s; only F32 can be read", path, spec.name, entry->dtype));
  }
  if (entry->shape != spec.shape) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: tensor '%s' has shape [%s], the model's has [%s]",
                                                      path, spec.name, absl::StrJoin(entry->shape, ", "),
                                                      absl::StrJoin(spec.shape, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadSafetensors(const std::string& path, Replica& replica) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path, AccessPattern::kSequential));
  ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile parsed, ParseSafetensors(file.bytes(), path));
  std::map<std::string_view, const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : parsed.tensors) entries.emplace(entry.name, &entry);
  const Manifest& manifest = replica.manifest();
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layout, PlanFragments(manifest, 1));
  std::vector<float> values(layout[0].elements);
  for (const TensorSlot& slot : layout[0].slots) {
    const TensorSpec& spec = manifest.tensors[slot.tensor];
    const auto found = entries.find(spec.name);
    const SafetensorsEntry* const entry = found == entries.end() ? nullptr : found->second;
    ATOLL_RETURN_IF_ERROR(CheckTensor(path, spec, entry));
    std::memcpy(values.data() + slot.offset, entry->bytes.data(), entry->bytes.size());
  }
  return replica.WriteFragment(layout[0], values);
}

}  // namespace atl
