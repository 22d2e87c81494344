#include "cli/published_model.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "cli/exit_code.h"
#include "cli/pull_model.h"
#include "common/status.h"
#include "protos/config/run_config.h"
#include "protos/wire/manifest.h"

namespace atl {

absl::StatusOr<PublishedModel> PullPublished(ObserverClient& client, Duration stall,
                                             const std::function<absl::Status(const RunOptions&)>& check) {
  const v1::JoinReply& run = client.run();
  PublishedModel model;
  ATOLL_ASSIGN_OR_RETURN(model.options, ToRunOptions(run.config()));
  ATOLL_RETURN_IF_ERROR(check(model.options));
  if (run.manifest().tensors().empty()) {
    return FromCoordinator(absl::FailedPreconditionError(
        "the run has no parameters yet: no worker has seeded it; start a worker first"));
  }
  ATOLL_ASSIGN_OR_RETURN(model.manifest, ManifestFromProto(run.manifest()));
  ATOLL_ASSIGN_OR_RETURN(
      model.layouts,
      PlanFragments(model.manifest, static_cast<uint32_t>(run.fragments_size()), model.options.sync.pattern));
  ATOLL_ASSIGN_OR_RETURN(model.fragments, PullModel(client, model.layouts, model.options.sync.mode, stall));
  model.run_id = run.run_id();
  model.epoch = run.epoch();
  return model;
}

absl::StatusOr<PublishedModel> ReadStored(AdminClient& client, const ParametersQuery& query,
                                          const std::function<absl::Status(const RunOptions&)>& check) {
  ATOLL_ASSIGN_OR_RETURN(StoredParameters stored, client.ReadParameters(query, check));
  PublishedModel model{.manifest = std::move(stored.manifest),
                       .options = std::move(stored.options),
                       .layouts = std::move(stored.layouts),
                       .fragments = {},
                       .run_id = std::move(stored.run_id),
                       .epoch = stored.epoch};
  for (size_t f = 0; f < stored.parameters.size(); ++f) {
    model.fragments.push_back({.version = stored.versions[f], .values = std::move(stored.parameters[f])});
  }
  for (size_t i = 0; i < stored.state.size(); ++i) {
    model.outer_state.push_back(
        {.name = std::move(stored.state_names[i]), .fragments = std::move(stored.state[i])});
  }
  return model;
}

namespace {

/// `vector_of(f)`: that of fragment f.
template <typename VectorOf>
std::vector<std::span<const float>> CutTensors(const PublishedModel& model, VectorOf vector_of) {
  std::vector<std::span<const float>> tensors(model.manifest.tensors.size());
  for (size_t f = 0; f < model.layouts.size(); ++f) {
    const std::span<const float> vector = vector_of(f);
    for (const TensorSlot& slot : model.layouts[f].slots) {
      tensors[slot.tensor] = vector.subspan(slot.offset, slot.elements);
    }
  }
  return tensors;
}

}  // namespace

std::vector<std::span<const float>> TensorsOf(const PublishedModel& model) {
  return CutTensors(model, [&](size_t f) { return std::span(model.fragments[f].values); });
}

std::vector<std::span<const float>> TensorsOf(const PublishedModel& model, const OuterVector& vector) {
  return CutTensors(model, [&](size_t f) { return std::span(vector.fragments[f]); });
}

std::map<std::string, std::string> VersionMetadata(const PublishedModel& model) {
  std::map<std::string, std::string> metadata;
  metadata["atoll_version"] = absl::StrFormat("%d", model.fragments.front().version);
  // In an overlapped run, fragments have different versions.
  if (model.options.sync.mode == SyncMode::kOverlapped) {
    for (size_t f = 0; f < model.fragments.size(); ++f) {
      metadata[absl::StrFormat("atoll_version_of_fragment_%d", f)] =
          absl::StrFormat("%d", model.fragments[f].version);
    }
  }
  return metadata;
}

}  // namespace atl
