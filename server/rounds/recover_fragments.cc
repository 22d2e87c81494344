#include "server/rounds/recover_fragments.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/planted_defect.h"
#include "common/status.h"
#include "core/codec.h"
#include "storage/describe.h"

namespace atl {

absl::StatusOr<FragmentState> LoadFragment(VersionSource& source, bool delta_pulls, Epoch epoch,
                                           const FragmentLayout& layout, Version version) {
  ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, source.Stored(layout.id));
  if (delta_pulls && stored.state_vectors == 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("what was published of fragment %d was not kept: the run was begun without "
                        "codec.pull_delta, which is settled when a run begins",
                        layout.id.value()));
  }
  FragmentState state{.epoch = epoch, .layout = layout, .version = version, .theta = nullptr, .state = {}};
  TensorBuffer theta(layout.elements);
  FragmentTensorsTarget target{.parameters = theta.values(), .state = {}};
  for (uint32_t i = 0; i < stored.state_vectors; ++i) {
    state.state.emplace_back(layout.elements);
    target.state.push_back(state.state.back().values());
  }
  ATOLL_RETURN_IF_ERROR(source.ReadInto(layout, version, target));
  if (Planted(PlantedDefect::kLosesMomentum)) std::ranges::fill(state.state.front().values(), 0.0F);
  state.theta = std::make_shared<TensorBuffer>(std::move(theta));
  if (delta_pulls) {
    state.published = std::make_shared<TensorBuffer>(std::move(state.state.back()));
    state.state.pop_back();
  }
  return state;
}

absl::StatusOr<MergeInputs> MapInputs(VersionSource& source, const std::vector<Contribution>& contributions,
                                      const std::vector<float>& weights) {
  if (weights.size() != contributions.size()) {
    return absl::DataLossError(absl::StrFormat("its record has %d contributions and %d weights",
                                               contributions.size(), weights.size()));
  }
  MergeInputs mapped;
  for (size_t i = 0; i < contributions.size(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<Payload> payload, source.OpenPayload(contributions[i].key));
    mapped.inputs.push_back({.codec = &CodecFor(contributions[i].codec),
                             .payload = payload->bytes(),
                             .weight = weights[i],
                             .norm = contributions[i].norm});
    mapped.payloads.push_back(std::move(payload));
  }
  return mapped;
}

namespace {

std::string InFile(const Payload& payload) {
  const std::string path = payload.path();
  return path.empty() ? "" : absl::StrFormat(" (file %s)", path);
}

}  // namespace

absl::Status CheckPayloads(const MergeInputs& mapped, const std::vector<Contribution>& contributions,
                           MergeEngine& engine) {
  std::vector<uint32_t> crcs(contributions.size());
  engine.ForEach(crcs.size(), [&](size_t i) { crcs[i] = Crc32c(mapped.payloads[i]->bytes()); });
  for (size_t i = 0; i < contributions.size(); ++i) {
    if (crcs[i] == contributions[i].payload_crc32c) continue;
    return absl::DataLossError(
        absl::StrFormat("the payload of the %s is damaged: its crc32c is %08x instead of %08x%s",
                        Describe(contributions[i].key), crcs[i], contributions[i].payload_crc32c,
                        InFile(*mapped.payloads[i])));
  }
  return absl::OkStatus();
}

absl::Status Replay(VersionSource& source, MergeEngine& engine, const RoundRecord& record,
                    FragmentState& state) {
  const auto lost = [&](const std::string& why) {
    return absl::DataLossError(
        absl::StrFormat("version %d of fragment %d cannot be rebuilt from its record: %s; restore the data "
                        "directory from a backup",
                        record.version.value(), record.fragment.value(), why));
  };
  if (record.version != Next(state.version)) {
    return lost(absl::StrFormat("it follows version %d", state.version.value()));
  }
  if (record.outer_steps != state.outer_steps + 1) {
    return lost(absl::StrFormat("it is outer step %d, and its base has seen %d", record.outer_steps,
                                state.outer_steps));
  }
  const auto mapped = MapInputs(source, record.contributions, record.weights);
  if (!mapped.ok()) return lost(std::string(mapped.status().message()));
  auto computed = engine.Step(mapped->inputs, record.merge, record.outer, state);
  const VersionHashes committed{
      .parameters = record.parameters, .state = record.state, .published = record.published};
  if (!computed.ok() || computed->hashes != committed) {
    // The rare case pays for the question whose fault it is.
    const absl::Status payloads = CheckPayloads(*mapped, record.contributions, engine);
    if (!payloads.ok()) return lost(std::string(payloads.message()));
    if (!computed.ok()) return lost(std::string(computed.status().message()));
    return lost("the replayed bits are not the ones that were committed");
  }
  if (!Planted(PlantedDefect::kForgetsToReplay)) {
    state.theta = computed->theta;
    state.published = computed->published;
  }
  state.version = record.version;
  state.outer_steps = record.outer_steps;
  return absl::OkStatus();
}

namespace {

/// Of a stored version; version 0 was seeded, and has seen none.
absl::StatusOr<uint64_t> OuterStepsOf(const Recovery& recovery, FragmentId fragment, Version version) {
  if (version == Version(0)) return 0;
  for (const RoundRecord& record : recovery.rounds) {
    if (record.fragment == fragment && record.version == version) return record.outer_steps;
  }
  return absl::DataLossError(
      absl::StrFormat("the round record of version %d of fragment %d is missing; restore the data directory "
                      "from a backup",
                      version.value(), fragment.value()));
}

}  // namespace

absl::StatusOr<std::vector<FragmentState>> RecoverFragments(VersionSource& source, const Recovery& recovery,
                                                            const std::vector<FragmentLayout>& layouts,
                                                            MergeEngine& engine) {
  std::vector<FragmentState> fragments;
  for (const FragmentRecovery& found : recovery.fragments) {
    ATOLL_ASSIGN_OR_RETURN(FragmentState state,
                           LoadFragment(source, engine.delta_pulls(), recovery.identity.epoch,
                                        layouts[found.fragment.value()], found.stored));
    ATOLL_ASSIGN_OR_RETURN(state.outer_steps, OuterStepsOf(recovery, found.fragment, found.stored));
    for (const RoundRecord& record : found.to_replay) {
      ATOLL_RETURN_IF_ERROR(Replay(source, engine, record, state));
    }
    if (state.version != found.head) {
      return absl::DataLossError(
          absl::StrFormat("fragment %d was committed up to version %d, but the records lead "
                          "only to version %d; restore the data directory from a backup",
                          found.fragment.value(), found.head.value(), state.version.value()));
    }
    fragments.push_back(std::move(state));
  }
  return fragments;
}

}  // namespace atl
