#include "server/opening/import_seed.h"

#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "core/float_bits.h"
#include "core/model_check.h"
#include "core/model_shape.h"
#include "core/payload_stats.h"
#include "core/safetensors.h"
#include "server/opening/model_memory.h"

namespace atl {
namespace {

std::string Text(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status Wrong(const std::string& path, const std::string& tensor, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: tensor '%s' %s", path, tensor, what));
}

template <typename Widen>
void WidenAll(std::span<const std::byte> bytes, std::span<float> values, Widen widen) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
    values[i] = widen(half);
  }
}

/// ParseSafetensors has checked that shape, dtype and bytes fit each other.
absl::Status CopyTensor(const std::string& path, const SafetensorsEntry& entry, std::span<float> values) {
  if (entry.dtype == "F32") {
    std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  } else if (entry.dtype == "F16") {
    WidenAll(entry.bytes, values, FloatFromFp16);
  } else if (entry.dtype == "BF16") {
    WidenAll(entry.bytes, values, FloatFromBf16);
  } else {
    return Wrong(path, entry.name,
                 absl::StrFormat("is of type %s; F32, F16 and BF16 can be imported", entry.dtype));
  }
  const auto bad = FirstNonFinite(values);
  if (!bad) return absl::OkStatus();
  return Wrong(path, entry.name, absl::StrFormat("has a value that is not finite, at %d", *bad));
}

absl::StatusOr<std::map<std::string, const SafetensorsEntry*>> ByName(const std::string& path,
                                                                      const SafetensorsFile& file,
                                                                      const Manifest& manifest) {
  std::map<std::string, const SafetensorsEntry*> by_name;
  for (const SafetensorsEntry& entry : file.tensors) by_name[entry.name] = &entry;
  std::map<std::string, const TensorSpec*> wanted;
  for (const TensorSpec& spec : manifest.tensors) wanted[spec.name] = &spec;
  for (const auto& [name, spec] : wanted) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) return Wrong(path, name, "is missing; the model of the configuration has it");
    if (found->second->shape == spec->shape) continue;
    return Wrong(path, name,
                 absl::StrFormat("has shape %s; the model of the configuration has %s",
                                 Text(found->second->shape), Text(spec->shape)));
  }
  for (const auto& [name, entry] : by_name) {
    if (!wanted.contains(name)) return Wrong(path, name, "is not in the model of the configuration");
  }
  return by_name;
}

/// That of the configuration. An external model is the one of the file.
absl::StatusOr<Manifest> ManifestToImport(const std::string& path, const SafetensorsFile& file,
                                          const ModelOptions& model) {
  if (model.external() == nullptr) return ManifestOf(model);
  ATOLL_ASSIGN_OR_RETURN(Manifest manifest, ManifestOfFile(file, path));
  const absl::Status expected = CheckParameters(model, manifest);
  if (!expected.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", expected.message()));
  return manifest;
}

absl::StatusOr<Manifest> ManifestToImport(const std::string& path, const ModelOptions& model) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path, AccessPattern::kSequential));
  ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(mapped.bytes(), path));
  return ManifestToImport(path, file, model);
}

}  // namespace

absl::StatusOr<std::vector<TensorBuffer>> ReadSafetensors(const std::string& path, const Manifest& manifest,
                                                          const std::vector<FragmentLayout>& layouts) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path, AccessPattern::kSequential));
  ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(mapped.bytes(), path));
  ATOLL_ASSIGN_OR_RETURN(const auto by_name, ByName(path, file, manifest));
  std::vector<TensorBuffer> buffers;
  for (const FragmentLayout& layout : layouts) {
    TensorBuffer& buffer = buffers.emplace_back(TensorBuffer::Zeros(layout.elements));
    for (const TensorSlot& slot : layout.slots) {
      const SafetensorsEntry& entry = *by_name.at(manifest.tensors[slot.tensor].name);
      ATOLL_RETURN_IF_ERROR(CopyTensor(path, entry, buffer.values().subspan(slot.offset, slot.elements)));
    }
  }
  return buffers;
}

absl::Status CheckImport(const std::string& path, const ModelOptions& model) {
  if (path.empty()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path, AccessPattern::kSequential));
  ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile file, ParseSafetensors(mapped.bytes(), path));
  ATOLL_ASSIGN_OR_RETURN(const Manifest manifest, ManifestToImport(path, file, model));
  return ByName(path, file, manifest).status();
}

absl::StatusOr<std::optional<ImportedSeed>> ReadImport(const CoordinatorOptions& options) {
  if (options.import_path.empty()) return std::optional<ImportedSeed>();
  ImportedSeed seed;
  ATOLL_ASSIGN_OR_RETURN(seed.manifest, ManifestToImport(options.import_path, options.run.model));
  ATOLL_ASSIGN_OR_RETURN(seed.layouts,
                         PlanFragments(seed.manifest, options.fragments, options.run.sync.pattern));
  ATOLL_RETURN_IF_ERROR(CheckContributionBudget(options.run, seed.layouts));
  ATOLL_RETURN_IF_ERROR(CheckAveragedTensors(options.run, seed.manifest));
  ATOLL_RETURN_IF_ERROR(CheckModelMemory(seed.layouts));
  ATOLL_ASSIGN_OR_RETURN(seed.buffers, ReadSafetensors(options.import_path, seed.manifest, seed.layouts));
  return std::optional<ImportedSeed>(std::move(seed));
}

}  // namespace atl
