#include "client/engine/snapshot_service.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "client/engine/manifest_check.h"
#include "client/engine/run_text.h"
#include "client/engine/worker_service.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/setup/setup_error.h"
#include "client/sync/load_published.h"
#include "client/sync/rejection.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr Duration kGiveUpAfter = Seconds(60);
constexpr Duration kLogEvery = Seconds(10);
constexpr std::chrono::milliseconds kPause{500};

absl::Status OnlyWrites() { return absl::UnimplementedError("a snapshot is only written to"); }

/// Takes the parameters as they are pulled: all tensors, one after the other, in shared memory.
class SnapshotReplica final : public Replica {
 public:
  SnapshotReplica(Manifest manifest, std::span<float> values)
      : manifest_(std::move(manifest)), values_(values) {
    for (const TensorSpec& tensor : manifest_.tensors) {
      offsets_.push_back(elements_);
      elements_ += tensor.elements();
    }
  }

  const Manifest& manifest() const override { return manifest_; }
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override {
    for (const TensorSlot& slot : fragment.slots) {
      std::ranges::copy(values.subspan(slot.offset, slot.elements),
                        values_.begin() + static_cast<ptrdiff_t>(offsets_[slot.tensor]));
    }
    return absl::OkStatus();
  }
  std::vector<ipc::Piece> Pieces() const {
    std::vector<ipc::Piece> pieces;
    for (uint32_t i = 0; i < offsets_.size(); ++i)
      pieces.push_back({.tensor = i, .offset = offsets_[i], .elements = manifest_.tensors[i].elements()});
    return pieces;
  }

  absl::Status ReadFragment(const FragmentLayout&, std::span<float>) override { return OnlyWrites(); }
  absl::StatusOr<InnerStepResult> InnerStep(double) override { return OnlyWrites(); }
  absl::Status SetPartition(uint32_t, uint32_t) override { return OnlyWrites(); }
  uint64_t samples_consumed() const override { return 0; }
  absl::Status Seek(uint64_t) override { return OnlyWrites(); }
  absl::Status SaveState(ReplicaState&) override { return OnlyWrites(); }
  absl::Status LoadState(const ReplicaState&) override { return OnlyWrites(); }
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t) override { return OnlyWrites(); }

 private:
  const Manifest manifest_;
  const std::span<float> values_;
  std::vector<uint64_t> offsets_;
  uint64_t elements_ = 0;
};

std::vector<ipc::Tensor> TensorsOf(const Manifest& manifest) {
  std::vector<ipc::Tensor> tensors;
  for (const TensorSpec& tensor : manifest.tensors) {
    tensors.push_back({.name = tensor.name, .shape = tensor.shape, .flags = FlagsOf(tensor)});
  }
  return tensors;
}

absl::StatusOr<ipc::Snapshot> Pull(CoordinatorConnection& connection, const JoinedRun& run,
                                   ipc::SharedMemory& values) {
  if (!run.manifest.has_value() || run.fragments.empty()) {
    return absl::UnavailableError(absl::StrFormat(
        "the run '%s' has no published version yet, not even version 0: no worker has brought "
        "its parameters. Start a worker, then pull again",
        run.run.name));
  }
  const uint64_t bytes = run.manifest->elements() * sizeof(float);
  if (!values.Grow(bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot share %d bytes of memory with the caller: %s", bytes, std::strerror(errno)));
  }
  SnapshotReplica replica(*run.manifest, values.floats());
  ATOLL_ASSIGN_OR_RETURN(const Version version, LoadPublished(connection, run, replica));
  return ipc::Snapshot{.version = version.value(),
                       .run_json = RunJson(run, *run.manifest),
                       .tensors = TensorsOf(*run.manifest),
                       .pieces = replica.Pieces()};
}

absl::StatusOr<ipc::Snapshot> PullOnce(const EngineOptions& options, CoordinatorConnection& connection,
                                       ipc::SharedMemory& values) {
  JoinCall join;
  join.worker = "observer-" + ToHex(RandomBytes(4));
  join.secret = RandomBytes(32);
  join.role = WorkerRole::kObserver;
  join.expected_run = options.member.expect_run;
  ATOLL_ASSIGN_OR_RETURN(const JoinedRun run, connection.Join(join));
  auto snapshot = Pull(connection, run, values);
  connection.Leave(run.member, "done reading").IgnoreError();
  return snapshot;
}

/// Waits a moment. False: nobody wants the snapshot any more.
bool CallerWaits(int64_t caller, ipc::MessageSocket& socket) {
  ipc::MessageType type{};
  std::string body;
  return socket.Receive(kPause, type, body) == ipc::Received::kTimeout && ::getppid() == caller;
}

}  // namespace

absl::StatusOr<ipc::Snapshot> PullSnapshot(const EngineOptions& options, int64_t caller,
                                           CallerChannel& channel, const Logger& log) {
  const MemberFlags& flags = options.member;
  ATOLL_RETURN_IF_ERROR(CheckMemberFlags(flags));
  const SystemClock clock{};
  ATOLL_ASSIGN_OR_RETURN(const auto security, ChannelSecurity::Create(flags.security, &clock, log));
  ATOLL_RETURN_IF_ERROR(security->CheckTarget(flags.coordinator));
  GrpcConnection connection({.address = flags.coordinator, .security = security},
                            MakeChannel({.address = flags.coordinator, .security = security}), &clock);
  const MonoTime begin = clock.Now();
  std::optional<MonoTime> said;
  while (true) {
    auto snapshot = PullOnce(options, connection, channel.values);
    if (snapshot.ok() || ReactionTo(snapshot.status()) != Reaction::kRetry) return snapshot;
    if (!flags.wait_forever && clock.Now() - begin > kGiveUpAfter) return snapshot;
    if (!said.has_value() || clock.Now() - *said >= kLogEvery) {
      said = clock.Now();
      log.Warning("cannot pull the published parameters; trying again",
                  {{"error", Explain(snapshot.status())}});
    }
    if (!CallerWaits(caller, channel.socket)) return absl::CancelledError("the caller gave up the pull");
  }
}

}  // namespace atl
