#include "server/admin/parameter_reader.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/human.h"
#include "common/memory_limit.h"
#include "common/resident_bytes.h"
#include "common/sleeper.h"
#include "common/status.h"
#include "core/fragment_plan.h"
#include "core/outer_optimizer.h"
#include "core/protocol/pull.h"
#include "server/admin/checkpoint_names.h"
#include "server/admin/restore.h"
#include "server/admin/stored_choice.h"
#include "server/rounds/merge_engine.h"
#include "server/rounds/recover_fragments.h"

namespace atl {
namespace {

// A multiple of what a message holds, and with the default size of a stored chunk a chunk of four shards.
constexpr uint64_t kWindowElements = 4 * kWireChunkBytes / sizeof(float);
constexpr Duration kStoredWithin = Seconds(10);
constexpr Duration kLookInterval = Seconds(0.05);

/// Fills the values from a position of one fragment.
using RangeReader = std::function<absl::Status(const VectorPosition&, std::span<float>)>;

/// Takes a place among a few; gives it back.
class Place {
 public:
  Place(std::atomic<int>& taken, int most) : taken_(taken), mine_(taken.fetch_add(1) < most) {}
  ~Place() { taken_.fetch_sub(1); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool mine() const { return mine_; }

 private:
  std::atomic<int>& taken_;
  const bool mine_;
};

bool SendWindow(FragmentId fragment, const VectorPosition& from, std::span<const float> values,
                ParameterSink& sink) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  for (uint64_t offset = 0; offset < bytes.size(); offset += kWireChunkBytes) {
    const ParameterPiece piece{
        .fragment = fragment,
        .vector = from.vector,
        .first_byte = from.first * sizeof(float) + offset,
        .bytes = bytes.subspan(offset, std::min<uint64_t>(kWireChunkBytes, bytes.size() - offset))};
    if (!sink.Take(piece)) return false;
  }
  return true;
}

/// The first `vectors` vectors of a fragment. False: the sink wants no more.
absl::StatusOr<bool> SendFragment(const FragmentLayout& layout, uint32_t vectors, const RangeReader& read,
                                  ParameterSink& sink) {
  std::vector<float> window(std::min(layout.elements, kWindowElements));
  for (uint32_t vector = 0; vector < vectors; ++vector) {
    for (uint64_t first = 0; first < layout.elements; first += window.size()) {
      const VectorPosition from{.vector = vector, .first = first};
      const auto values = std::span(window).first(std::min<uint64_t>(window.size(), layout.elements - first));
      ATOLL_RETURN_IF_ERROR(read(from, values));
      if (!SendWindow(layout.id, from, values, sink)) return false;
    }
  }
  return true;
}

/// Rounds go on: a version that retention let go of meanwhile is no damage.
absl::Status ReadKept(RunStore& store, const FragmentLayout& layout, Version version,
                      const VectorPosition& from, std::span<float> values) {
  absl::Status read = store.ReadRange(layout, version, from, values);
  if (read.ok()) return read;
  const absl::StatusOr<StoredEntry> now = store.Stored(layout.id);
  if (!now.ok() || std::ranges::binary_search(now->versions, version)) return read;
  return absl::NotFoundError(absl::StrFormat(
      "version %d was dropped while it was read, because newer versions were stored; create a checkpoint and "
      "read that, or set checkpoint.keep_versions to keep more versions",
      version.value()));
}

std::vector<std::string> OuterState(const ReadParametersCall& call, OuterOptimizerKind kind) {
  if (!call.outer_state) return {};
  const auto names = OuterStateNames(kind);
  return {names.begin(), names.end()};
}

/// Theta, the next theta, and the state of the largest fragment that is to be replayed.
absl::Status CheckReplayMemory(const std::string& name, const Recovery& recovery,
                               const std::vector<FragmentLayout>& layouts, size_t state_vectors) {
  uint64_t elements = 0;
  for (const FragmentRecovery& found : recovery.fragments) {
    if (!found.to_replay.empty()) elements = std::max(elements, layouts[found.fragment.value()].elements);
  }
  const uint64_t bytes = elements * sizeof(float) * (2 + state_vectors);
  const MemoryLimit limit = ReadMemoryLimit();
  const uint64_t used = ResidentBytes().value_or(0);
  const uint64_t free = limit.bytes - std::min(limit.bytes, used);
  if (!limit.known || bytes <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "checkpoint '%s' was made before its newest version was stored, so reading it replays rounds and takes "
      "%s; of the memory limit of %s (%s), %s are free. Start a coordinator on a copy of the checkpoint and "
      "read its newest version, or create another checkpoint",
      name, HumanBytes(bytes), HumanBytes(limit.bytes), limit.source, HumanBytes(free)));
}

}  // namespace

absl::Status ParameterReader::Read(const ReadParametersCall& call, ParameterSink& sink) {
  const Place place(readers_, kMaxReaders);
  if (!place.mine()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d exports are in progress, as many as the coordinator serves at once; try again later",
        kMaxReaders));
  }
  return call.checkpoint.empty() ? ReadVersion(call, sink) : ReadCheckpoint(call, sink);
}

absl::StatusOr<std::vector<Version>> ParameterReader::Choose(const std::vector<Version>& heads,
                                                             std::optional<Version> asked) {
  std::vector<StoredFragment> fragments;
  for (size_t i = 0; i < heads.size(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(StoredEntry entry, context_.store->Stored(FragmentId(static_cast<uint32_t>(i))));
    fragments.push_back({.stored = std::move(entry.versions), .head = heads[i]});
  }
  return ChooseStored(fragments, context_.config()->run.sync.mode, asked);
}

absl::StatusOr<std::vector<Version>> ParameterReader::AwaitStored(std::optional<Version> asked) {
  std::vector<Version> heads;  // of now, so that a run with short rounds does not run away
  for (const FragmentStatusView& fragment : context_.state->views().numbers().fragments) {
    heads.push_back(fragment.version);
  }
  const MonoTime deadline = SteadyNow() + kStoredWithin;
  while (true) {
    absl::StatusOr<std::vector<Version>> chosen = Choose(heads, asked);
    if (!absl::IsUnavailable(chosen.status())) return chosen;
    if (SteadyNow() >= deadline || context_.shutting_down->load()) {
      return absl::FailedPreconditionError(
          absl::StrCat(chosen.status().message(), ". Read one of these, or try again later"));
    }
    InterruptibleSleeper().SleepFor(kLookInterval);
  }
}

absl::Status ParameterReader::ReadVersion(const ReadParametersCall& call, ParameterSink& sink) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Version> versions, AwaitStored(call.version));
  const std::vector<FragmentLayout> layouts = context_.state->settings().Layouts();
  const ConfigPtr config = context_.config();
  ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, context_.store->Stored(FragmentId(0)));
  // Versions of the time before a restore have the epoch of that time.
  const auto record = context_.store->ReadRound(FragmentId(0), versions.front());
  const ParametersView view{.run_id = context_.identity.run_id,
                            .epoch = record.ok() ? record->epoch : stored.epoch,
                            .config = config->bytes,
                            .manifest = context_.state->settings().Model().manifest(),
                            .versions = versions,
                            .outer_state = OuterState(call, config->run.outer.optimizer)};
  if (!sink.Begin(view)) return absl::OkStatus();
  const auto vectors = static_cast<uint32_t>(1 + view.outer_state.size());
  for (const FragmentLayout& layout : layouts) {
    const Version version = versions[layout.id.value()];
    const auto read = [&](const VectorPosition& from, std::span<float> values) {
      return ReadKept(*context_.store, layout, version, from, values);
    };
    ATOLL_ASSIGN_OR_RETURN(const bool wanted, SendFragment(layout, vectors, read, sink));
    if (!wanted) break;
  }
  return absl::OkStatus();
}

absl::Status ParameterReader::ReadCheckpoint(const ReadParametersCall& call, ParameterSink& sink) {
  auto opened = context_.store->OpenCheckpoint(call.checkpoint, CheckpointUse::kRead);
  if (!opened.ok()) return NameCheckpoints(*context_.store, call.checkpoint, opened.status());
  ATOLL_RETURN_IF_ERROR(CheckSameRun(*opened, context_));
  const Recovery& recovery = opened->recovery;
  const RunOptions& run = context_.config()->run;
  ATOLL_ASSIGN_OR_RETURN(
      const std::vector<FragmentLayout> layouts,
      PlanFragments(*recovery.manifest, static_cast<uint32_t>(recovery.fragments.size()), run.sync.pattern));
  const size_t state_vectors = OuterStateVectors(run.outer.optimizer) + (run.pull_delta ? 2 : 0);
  ATOLL_RETURN_IF_ERROR(CheckReplayMemory(call.checkpoint, recovery, layouts, state_vectors));
  const ParametersView view{.run_id = recovery.identity.run_id,
                            .epoch = opened->manifest.epoch,
                            .config = recovery.configs.back().bytes,
                            .manifest = *recovery.manifest,
                            .versions = opened->manifest.versions,
                            .outer_state = OuterState(call, run.outer.optimizer)};
  if (!sink.Begin(view)) return absl::OkStatus();
  const auto vectors = static_cast<uint32_t>(1 + view.outer_state.size());
  for (const FragmentLayout& layout : layouts) {
    ATOLL_ASSIGN_OR_RETURN(const bool wanted, SendOfCheckpoint(*opened, layout, vectors, sink));
    if (!wanted) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ParameterReader::SendOfCheckpoint(OpenedCheckpoint& opened, const FragmentLayout& layout,
                                                       uint32_t vectors, ParameterSink& sink) {
  const FragmentRecovery& found = opened.recovery.fragments[layout.id.value()];
  if (!found.to_replay.empty()) return SendReplayed(opened, layout, vectors, sink);
  const auto read = [&](const VectorPosition& from, std::span<float> values) {
    return opened.source->ReadRange(layout, found.stored, from, values);
  };
  return SendFragment(layout, vectors, read, sink);
}

absl::StatusOr<bool> ParameterReader::SendReplayed(OpenedCheckpoint& opened, const FragmentLayout& layout,
                                                   uint32_t vectors, ParameterSink& sink) {
  const Place place(replays_, 1);
  if (!place.mine()) {
    return absl::ResourceExhaustedError(
        "another export replays rounds of a checkpoint; try again when it is done");
  }
  Recovery one = opened.recovery;
  one.fragments = {opened.recovery.fragments[layout.id.value()]};
  const std::vector<FragmentLayout> layouts = context_.state->settings().Layouts();
  const RunOptions& run = context_.config()->run;
  MergeEngine engine(1, run.pull_codec, run.pull_delta);
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentState> fragments,
                         RecoverFragments(*opened.source, one, layouts, engine));
  const FragmentTensorsView tensors = fragments.front().view();
  const auto read = [&](const VectorPosition& from, std::span<float> values) {
    const std::span<const float> vector =
        from.vector == 0 ? tensors.parameters : tensors.state[from.vector - 1];
    std::ranges::copy(vector.subspan(from.first, values.size()), values.begin());
    return absl::OkStatus();
  };
  return SendFragment(layout, vectors, read, sink);
}

}  // namespace atl
