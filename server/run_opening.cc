#include "server/run_opening.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/human.h"
#include "common/status.h"

namespace atoll {
namespace {

absl::Status Changed(std::string_view field, const std::string& recorded, const std::string& now) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s is fixed when a run begins: this run has %s, the configuration says %s; put it back, or "
      "start a new run in an empty data directory",
      std::string(field), recorded, now));
}

template <typename T>
absl::Status Same(std::string_view field, const T& recorded, const T& now) {
  if (recorded == now) return absl::OkStatus();
  if constexpr (std::is_enum_v<T>) {
    return Changed(field, std::to_string(static_cast<int>(recorded)), std::to_string(static_cast<int>(now)));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return Changed(field, "'" + recorded + "'", "'" + now + "'");
  } else {
    return Changed(field, std::to_string(recorded), std::to_string(now));
  }
}

ConfigPtr Snapshot(const ConfigEntry& entry, const RunOptions& run) {
  return std::make_shared<const ConfigSnapshot>(
      ConfigSnapshot{.version = entry.version, .bytes = entry.bytes, .run = run});
}

absl::StatusOr<OpenedRun> BeginRun(const CoordinatorOptions& options, const CoordinatorDeps& deps) {
  OpenedRun opened;
  RunIdentity& identity = opened.recovery.identity;
  identity.run_id = ToHex(RandomBytes(8));
  identity.name = options.run.name;
  identity.epoch = Epoch(RandomNonZero64());
  identity.created_unix_ns = deps.clock->WallNow().time_since_epoch().count();
  identity.shards = options.run.shards;
  identity.chunk_elements = options.chunk_elements;
  const ConfigEntry config{.version = 1,
                           .recorded_unix_ns = identity.created_unix_ns,
                           .author = std::string(kStartAuthor),
                           .bytes = options.config_bytes};
  ATOLL_RETURN_IF_ERROR(deps.store->CreateRun(identity, config));
  opened.recovery.configs.push_back(config);
  opened.config = Snapshot(config, options.run);
  deps.log.Info("a new run begins; waiting for a worker to seed it",
                {{"run", identity.name}, {"id", identity.run_id}});
  return opened;
}

absl::StatusOr<RunOptions> ReadRecorded(const ConfigCodec& codec, const ConfigEntry& entry) {
  auto recorded = codec.Parse(entry.bytes);
  if (recorded.ok()) return recorded;
  return absl::DataLossError(
      absl::StrFormat("version %d of the configuration, recorded with the run, cannot be read: %s",
                      entry.version, std::string(recorded.status().message())));
}

/// The configuration of the last start that brought one: what an operator set since is not in it.
const ConfigEntry& LastStarted(const std::vector<ConfigEntry>& configs) {
  for (auto it = configs.rbegin(); it != configs.rend(); ++it) {
    if (it->author == kStartAuthor) return *it;
  }
  return configs.front();
}

absl::Status AdoptConfig(const CoordinatorOptions& options, const CoordinatorDeps& deps, OpenedRun& opened) {
  const ConfigEntry newest = opened.recovery.configs.back();
  ATOLL_RETURN_IF_ERROR(Same("checkpoint.shards", opened.recovery.identity.shards, options.run.shards));
  opened.config = Snapshot(newest, options.run);
  if (newest.bytes == options.config_bytes) return absl::OkStatus();
  if (deps.config_codec != nullptr) {
    ATOLL_ASSIGN_OR_RETURN(const RunOptions recorded, ReadRecorded(*deps.config_codec, newest));
    // A supervisor starts the coordinator with the file that it was begun with: what was set since stays.
    if (LastStarted(opened.recovery.configs).bytes == options.config_bytes) {
      opened.config = Snapshot(newest, recorded);
      deps.log.Info(
          "the configuration is the one that was set last, not that of the file, which has not changed",
          {{"version", newest.version}, {"author", newest.author}});
      return absl::OkStatus();
    }
    ATOLL_RETURN_IF_ERROR(CheckSettled(recorded, options.run));
  }
  const ConfigEntry config{.version = newest.version + 1,
                           .recorded_unix_ns = deps.clock->WallNow().time_since_epoch().count(),
                           .author = std::string(kStartAuthor),
                           .bytes = options.config_bytes};
  ATOLL_RETURN_IF_ERROR(deps.store->PutConfig(config));
  opened.config = Snapshot(config, options.run);
  opened.recovery.configs.push_back(config);
  deps.log.Info("the configuration changed; it is in force from the next round on",
                {{"version", config.version}});
  return absl::OkStatus();
}

absl::Status RecoverFragments(const CoordinatorDeps& deps, MergeEngine& engine, OpenedRun& opened) {
  const Recovery& recovery = opened.recovery;
  ATOLL_ASSIGN_OR_RETURN(opened.layouts,
                         PlanFragments(*recovery.manifest, static_cast<uint32_t>(recovery.fragments.size())));
  for (const FragmentRecovery& found : recovery.fragments) {
    ATOLL_ASSIGN_OR_RETURN(FragmentState state,
                           LoadFragment(*deps.store, recovery.identity.epoch,
                                        opened.layouts[found.fragment.value()], found.stored));
    for (const RoundRecord& record : found.to_replay) {
      ATOLL_RETURN_IF_ERROR(Replay(*deps.store, engine, record, state));
    }
    if (state.version != found.head) {
      return absl::DataLossError(
          absl::StrFormat("fragment %d was committed up to version %d, but the records lead "
                          "only to version %d; restore the data directory from a backup",
                          found.fragment.value(), found.head.value(), state.version.value()));
    }
    deps.log.Info("fragment recovered", {{"fragment", found.fragment.value()},
                                         {"version", found.head.value()},
                                         {"replayed_rounds", found.to_replay.size()},
                                         {"accepted_contributions", found.accepted.size()}});
    opened.fragments.push_back(std::move(state));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSettled(const RunOptions& recorded, const RunOptions& now) {
  const GptOptions& a = recorded.model;
  const GptOptions& b = now.model;
  ATOLL_RETURN_IF_ERROR(Same("run.name", recorded.name, now.name));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.layers", a.layers, b.layers));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.heads", a.heads, b.heads));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.width", a.width, b.width));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.context", a.context, b.context));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.vocabulary", a.vocabulary, b.vocabulary));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.tied_embeddings", a.tied_embeddings, b.tied_embeddings));
  ATOLL_RETURN_IF_ERROR(Same("model.gpt.bias", a.bias, b.bias));
  ATOLL_RETURN_IF_ERROR(Same("data.tokenizer", recorded.data.tokenizer, now.data.tokenizer));
  ATOLL_RETURN_IF_ERROR(Same("data.mode", recorded.data.mode, now.data.mode));
  ATOLL_RETURN_IF_ERROR(Same("data.partitions", recorded.data.partitions, now.data.partitions));
  ATOLL_RETURN_IF_ERROR(Same("outer.optimizer", recorded.outer.optimizer, now.outer.optimizer));
  ATOLL_RETURN_IF_ERROR(Same("codec.push", recorded.push_codec, now.push_codec));
  ATOLL_RETURN_IF_ERROR(Same("codec.pull", recorded.pull_codec, now.pull_codec));
  return Same("checkpoint.shards", recorded.shards, now.shards);
}

absl::StatusOr<FragmentState> LoadFragment(RunStore& store, Epoch epoch, const FragmentLayout& layout,
                                           Version version) {
  ATOLL_ASSIGN_OR_RETURN(const FragmentTensors tensors, store.ReadVersion(layout, version));
  FragmentState state{.epoch = epoch, .layout = layout, .version = version, .theta = nullptr, .state = {}};
  state.theta = std::make_shared<TensorBuffer>(TensorBuffer::CopyOf(tensors.parameters));
  for (const std::vector<float>& vector : tensors.state) state.state.push_back(TensorBuffer::CopyOf(vector));
  return state;
}

absl::StatusOr<MergeInputs> MapInputs(RunStore& store, const std::vector<Contribution>& contributions,
                                      const std::vector<float>& weights) {
  MergeInputs mapped;
  for (size_t i = 0; i < contributions.size(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<Payload> payload, store.OpenPayload(contributions[i].key));
    mapped.inputs.push_back({.codec = &CodecFor(contributions[i].codec),
                             .payload = payload->bytes(),
                             .weight = weights[i],
                             .norm = contributions[i].norm});
    mapped.payloads.push_back(std::move(payload));
  }
  return mapped;
}

absl::Status Replay(RunStore& store, MergeEngine& engine, const RoundRecord& record, FragmentState& state) {
  const auto lost = [&](const std::string& why) {
    return absl::DataLossError(
        absl::StrFormat("version %d of fragment %d cannot be rebuilt from its record: %s; restore the data "
                        "directory from a backup",
                        record.version.value(), record.fragment.value(), why));
  };
  if (record.version != Next(state.version)) {
    return lost(absl::StrFormat("it follows version %d", state.version.value()));
  }
  const auto mapped = MapInputs(store, record.contributions, record.weights);
  if (!mapped.ok()) return lost(std::string(mapped.status().message()));
  auto computed = engine.Step(mapped->inputs, record.merge, record.outer, state);
  if (!computed.ok()) return lost(std::string(computed.status().message()));
  const VersionHashes committed{
      .parameters = record.parameters, .state = record.state, .published = record.published};
  if (computed->hashes != committed) return lost("the replayed bits are not the ones that were committed");
  state.theta = computed->theta;
  state.version = record.version;
  return absl::OkStatus();
}

absl::StatusOr<OpenedRun> OpenRun(const CoordinatorOptions& options, const CoordinatorDeps& deps,
                                  MergeEngine& engine) {
  ATOLL_ASSIGN_OR_RETURN(std::optional<Recovery> recovery, deps.store->Recover());
  if (!recovery) return BeginRun(options, deps);
  OpenedRun opened;
  opened.recovery = *std::move(recovery);
  ATOLL_RETURN_IF_ERROR(AdoptConfig(options, deps, opened));
  if (opened.recovery.manifest) ATOLL_RETURN_IF_ERROR(RecoverFragments(deps, engine, opened));
  return opened;
}

}  // namespace atoll
