#include "cli/export_files.h"

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/durable_file.h"
#include "common/status.h"
#include "core/outer_optimizer.h"
#include "core/safetensors.h"

namespace atl {
namespace {

constexpr char kEnding[] = ".safetensors";
constexpr char kMomentumEnding[] = ".momentum.safetensors";

absl::Status WriteTensors(const std::string& path, const std::string& header,
                          const std::vector<std::span<const float>>& tensors) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kTruncate));
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(header))));
  uint64_t offset = header.size();
  for (const std::span<const float> tensor : tensors) {
    ATOLL_RETURN_IF_ERROR(file.WriteAt(offset, std::as_bytes(tensor)));
    offset += tensor.size_bytes();
  }
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

}  // namespace

absl::StatusOr<ExportFile> ExportFile::Create(const std::string& option, const std::string& path) {
  auto partial = PartialFile::Create(path);
  if (partial.ok()) return ExportFile(path, *std::move(partial));
  return absl::Status(partial.status().code(),
                      absl::StrFormat("%s %s: %s", option, path, std::string(partial.status().message())));
}

absl::Status ExportFile::WriteModel(const PublishedModel& model) {
  // Of the other families every reader knows the manifest, and an export keeps the bytes that it always had.
  std::map<std::string, std::string> metadata = VersionMetadata(model);
  if (model.options.model.external() != nullptr) metadata.merge(ManifestMetadata(model.manifest));
  metadata["format"] = "pt";
  return WriteTensors(partial_->partial(), SafetensorsHeader(model.manifest, metadata), TensorsOf(model));
}

absl::Status ExportFile::WriteOuterState(const PublishedModel& model) {
  std::map<std::string, std::string> metadata = VersionMetadata(model);
  metadata["format"] = "pt";
  std::vector<SafetensorsSpec> specs;
  std::vector<std::span<const float>> tensors;
  for (const OuterVector& vector : model.outer_state) {
    for (const TensorSpec& tensor : model.manifest.tensors) {
      specs.push_back(
          {.name = absl::StrCat(vector.name, ".", tensor.name), .dtype = "F32", .shape = tensor.shape});
    }
    const std::vector<std::span<const float>> parts = TensorsOf(model, vector);
    tensors.insert(tensors.end(), parts.begin(), parts.end());
  }
  return WriteTensors(partial_->partial(), SafetensorsHeader(specs, metadata), tensors);
}

absl::Status ExportFile::Publish() { return partial_->Publish(); }

std::string MomentumPath(const std::string& out) {
  std::string base = out;
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  if (absl::EndsWith(base, kEnding)) base.resize(base.size() - (sizeof(kEnding) - 1));
  return base + kMomentumEnding;
}

absl::Status CheckMomentum(const RunOptions& run) {
  if (OuterStateVectors(run.outer.optimizer) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--with-momentum: the outer optimizer of the run, sgd, keeps nothing between its steps; leave the "
      "option out");
}

}  // namespace atl
