#include "server/opening/import_seed.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "core/hf/config_file.h"
#include "core/hf/layout.h"
#include "core/hf/tensor_match.h"
#include "core/model_check.h"
#include "core/model_shape.h"
#include "server/new_model.h"
#include "storage/weights/model_files.h"

namespace atl {
namespace {

/// A model's files, opened and found to be of a run's model; values are not looked at yet.
struct OpenedImport {
  ModelFiles files;
  Manifest manifest;
  HfLayout layout;
  TensorMatch match;
};

/// That of the configuration. An external model is the one of the file.
absl::StatusOr<Manifest> ManifestToImport(const std::string& path, const SafetensorsFile& file,
                                          const ModelOptions& model) {
  if (model.external() == nullptr) return ManifestOf(model);
  ATOLL_ASSIGN_OR_RETURN(Manifest manifest, ManifestOfFile(file, path));
  const absl::Status expected = CheckParameters(model, manifest);
  if (!expected.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", expected.message()));
  return manifest;
}

absl::StatusOr<OpenedImport> OpenImport(const std::string& path, const ModelOptions& model) {
  OpenedImport opened;
  ATOLL_ASSIGN_OR_RETURN(opened.files, ModelFiles::Open(path));
  ATOLL_ASSIGN_OR_RETURN(opened.manifest, ManifestToImport(path, opened.files.contents(), model));
  const auto layout = HfLayoutOf(model);
  opened.layout = layout ? *layout : PlainLayout(opened.manifest);
  // First: it says what is different, and not only that shapes are.
  if (const auto& config = opened.files.config(); layout && config) {
    ATOLL_RETURN_IF_ERROR(CheckHfConfig(config->text, *layout, config->path));
  }
  ATOLL_ASSIGN_OR_RETURN(opened.match, MatchTensors(opened.layout, opened.files.found(), path));
  return opened;
}

/// All that can be wrong with it in this run.
absl::StatusOr<std::vector<FragmentLayout>> CheckOpened(const OpenedImport& opened, const RunOptions& run,
                                                        uint32_t fragments) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<FragmentLayout> layouts,
                         PlanFragments(opened.manifest, fragments, run.sync.pattern));
  ATOLL_RETURN_IF_ERROR(CheckContributionBudget(run, layouts));
  ATOLL_RETURN_IF_ERROR(CheckAveragedTensors(run, opened.manifest));
  ATOLL_RETURN_IF_ERROR(CheckModelMemory(layouts));
  ATOLL_RETURN_IF_ERROR(CheckValues(opened.layout, opened.match));
  return layouts;
}

std::vector<TensorBuffer> Fill(const HfLayout& layout, const TensorMatch& match,
                               const std::vector<FragmentLayout>& fragments) {
  std::vector<TensorBuffer> buffers;
  for (const FragmentLayout& fragment : fragments) {
    TensorBuffer& buffer = buffers.emplace_back(TensorBuffer::Zeros(fragment.elements));
    for (const TensorSlot& slot : fragment.slots) {
      ReadValues(layout, match, slot.tensor, buffer.values().subspan(slot.offset, slot.elements));
    }
  }
  return buffers;
}

}  // namespace

absl::StatusOr<std::vector<TensorBuffer>> ReadSafetensors(const std::string& path, const Manifest& manifest,
                                                          const std::vector<FragmentLayout>& layouts) {
  ATOLL_ASSIGN_OR_RETURN(const ModelFiles files, ModelFiles::Open(path));
  const HfLayout layout = PlainLayout(manifest);
  ATOLL_ASSIGN_OR_RETURN(const TensorMatch match, MatchTensors(layout, files.found(), path));
  ATOLL_RETURN_IF_ERROR(CheckValues(layout, match));
  return Fill(layout, match, layouts);
}

absl::Status CheckImport(const std::string& path, const RunOptions& run) {
  if (path.empty()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const OpenedImport opened, OpenImport(path, run.model));
  const absl::Status checked = CheckOpened(opened, run, run.sync.fragments).status();
  if (!absl::IsFailedPrecondition(checked)) return checked;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", checked.message()));
}

absl::StatusOr<std::optional<ImportedSeed>> ReadImport(const CoordinatorOptions& options) {
  if (options.import_path.empty()) return std::optional<ImportedSeed>();
  ATOLL_ASSIGN_OR_RETURN(OpenedImport opened, OpenImport(options.import_path, options.run.model));
  ImportedSeed seed;
  ATOLL_ASSIGN_OR_RETURN(seed.layouts, CheckOpened(opened, options.run, options.fragments));
  seed.buffers = Fill(opened.layout, opened.match, seed.layouts);
  seed.manifest = std::move(opened.manifest);
  return std::optional<ImportedSeed>(std::move(seed));
}

}  // namespace atl
