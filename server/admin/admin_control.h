#ifndef ATOLL_SERVER_ADMIN_ADMIN_CONTROL_H_
#define ATOLL_SERVER_ADMIN_ADMIN_CONTROL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "core/config_codec.h"
#include "core/manifest.h"
#include "server/launch/launcher.h"
#include "server/views.h"

// What an operator can do to a run, in plain values. Fields are described in atoll/v1/admin.proto, which they
// mirror.

namespace atl {

/// Who asks: goes into the audit line of every action.
struct AdminCaller {
  std::string user;         // as it says of itself; empty: did not say
  std::string peer;         // address
  std::string proven = {};  // who it was shown to be; empty: nobody asked
  std::string how = {};     // "certificate", "token"; empty: not shown
  std::string by = {};      // "web"; empty: the admin port
};

enum class RunAction : uint8_t { kPause = 1, kResume = 2, kStop = 3, kCloseRound = 4, kResetDataset = 5 };
enum class WorkerAction : uint8_t {
  kDrain = 1,
  kRestart = 2,
  kEvict = 3,
  kBan = 4,
  kUnban = 5,
  kResync = 6,
  kForget = 7
};

struct ControlWorkerCall {
  WorkerName worker;
  WorkerAction action = WorkerAction::kDrain;
  bool at_once = false;
  std::string reason;
  std::optional<Duration> older_than = std::nullopt;  // kForget without a worker
};

/// A configuration as recorded.
struct ConfigView {
  uint64_t version = 0;
  std::string bytes;  // serialised RunConfig
  int64_t unix_ns = 0;
  std::string author;
  std::vector<std::string> changes;  // "path: old -> new" against the version before
};

/// What an extension did, or would do.
struct ExtensionView {
  uint64_t config_version = 0;  // recorded by it; of a dry run, the one in force
  uint32_t rounds_before = 0;
  uint32_t rounds_after = 0;
  double position = 0;  // inner step of the planned run
  uint64_t total_steps_before = 0;
  uint64_t total_steps_after = 0;
  double rate_before = 0;  // at this position
  double rate_after = 0;
  double final_rate = 0;
  bool reopened = false;  // the run was finished
};

struct ScaleResult {
  uint32_t before = 0;
  uint32_t target = 0;
  std::vector<WorkerName> names;
};

struct CheckpointView {
  std::string name;
  Epoch epoch;
  std::vector<Version> versions;  // by fragment
  uint64_t committed_tokens = 0;
  int64_t created_unix_ns = 0;
  uint64_t bytes = 0;
  uint64_t shared_bytes = 0;
  bool automatic = false;
  std::string path;
  std::string damage;  // which file, and how; empty: whole, as far as was looked
};

struct RestoreResult {
  Epoch epoch;
  std::vector<Version> versions;
  uint64_t committed_tokens = 0;
};

/// Which tensors are read. Neither a version nor a checkpoint: the newest version.
struct ReadParametersCall {
  std::optional<Version> version = std::nullopt;
  std::string checkpoint = {};
  bool outer_state = false;  // of the outer optimizer, too
};

/// What precedes the tensors.
struct ParametersView {
  std::string run_id;
  Epoch epoch;
  std::string config;  // serialised RunConfig
  Manifest manifest = {};
  std::vector<Version> versions = {};         // by fragment
  std::vector<std::string> outer_state = {};  // names of the vectors that follow the parameters of a fragment
};

/// A part of one vector of a fragment, at most kWireChunkBytes: float32 values in the order of its layout.
struct ParameterPiece {
  FragmentId fragment;
  uint32_t vector = 0;  // 0: the parameters; N: number N of ParametersView::outer_state, from 1
  uint64_t first_byte = 0;
  std::span<const std::byte> bytes;
};

/// Takes what is read. False: wants no more of it.
class ParameterSink {
 public:
  virtual ~ParameterSink() = default;
  virtual bool Begin(const ParametersView& view) = 0;
  /// `piece.bytes` are gone after the call.
  virtual bool Take(const ParameterPiece& piece) = 0;
};

struct VerifyView {
  FragmentId fragment;
  Version version;
  uint32_t done = 0;
  uint32_t total = 0;
  enum class Verdict : uint8_t { kEqual = 1, kDifferent = 2, kNotKept = 3 } verdict = Verdict::kEqual;
  std::string message;
  std::vector<WorkerName> confirmed_by;
  std::vector<WorkerName> denied_by;
};

struct MetricPointView {
  std::string name;
  WorkerName worker;
  Version version;
  uint64_t committed_tokens = 0;
  int64_t unix_ns = 0;
  double value = 0;
};

/// The run in numbers, now. Fields are described in atoll/v1/admin.proto, GetMetricsReply.
struct MetricsView {
  double wall_seconds = 0;
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  Version version;
  double train_loss = 0;
  double validation_loss = 0;
  double best_validation_loss = 0;
  double loss_slope_per_million_tokens = 0;
  double tokens_per_second = 0;
  double compute_utilisation = 0;
  uint64_t push_bytes = 0;
  uint64_t pull_bytes = 0;
  uint64_t data_parallel_bytes = 0;
  double communication_reduction = 0;
  double round_seconds_mean = 0;
  double commit_seconds_mean = 0;
  uint32_t live_trainers = 0;
};

/// One contribution as a round counted it.
struct RoundContributionView {
  WorkerName worker;
  uint64_t late_versions = 0;
  uint64_t tokens = 0;
  uint32_t steps = 0;
  double loss = 0;
  double norm = 0;
  double weight = 0;
  uint64_t payload_bytes = 0;
};

struct RoundDetailView {
  RoundSummaryView summary = {};
  uint64_t config_version = 0;
  std::vector<RoundContributionView> contributions = {};
};

struct RoundListView {
  std::vector<RoundDetailView> rounds = {};
  Version head;
};

inline constexpr uint32_t kMaxListedRounds = 1000;
inline constexpr uint32_t kDefaultListedRounds = 100;

/// Thread-safe; every call may block on the disk or on the launcher. What changes something writes an
/// ADMIN_ACTION event with the caller and the outcome; what is refused changed nothing.
class AdminControl {
 public:
  virtual ~AdminControl() = default;

  /// FailedPrecondition when it makes no sense now (resume of a run that is not paused), saying the state.
  virtual absl::StatusOr<std::string> ControlRun(const AdminCaller& caller, RunAction action,
                                                 const std::string& reason) = 0;
  /// NotFound when the name was never seen. The answer says what will happen, and when.
  virtual absl::StatusOr<std::string> ControlWorker(const AdminCaller& caller,
                                                    const ControlWorkerCall& call) = 0;

  /// Recorded as a new version, in force from the next round of each fragment. InvalidArgument naming path,
  /// value and allowed range; FailedPrecondition for a field that a run cannot change; Aborted when
  /// expected_version (not 0) is not the one in force.
  virtual absl::StatusOr<ConfigView> SetConfig(const AdminCaller& caller,
                                               const std::vector<ConfigSetting>& settings,
                                               uint64_t expected_version, bool dry_run) = 0;
  virtual absl::StatusOr<std::vector<ConfigView>> ListConfigs() = 0;
  /// More rounds, also for a run that is finished; recorded as a new configuration. Errors as SetConfig;
  /// FailedPrecondition when the run is stopped.
  virtual absl::StatusOr<ExtensionView> ExtendRun(const AdminCaller& caller, uint32_t rounds,
                                                  uint64_t expected_version, bool dry_run) = 0;

  /// FailedPrecondition, naming the flag, when the coordinator has no launcher, and when the shared data has
  /// too few parts for so many workers. Exactly one of add, target. Recorded: see WantedWorkers.
  virtual absl::StatusOr<ScaleResult> ScaleWorkers(const AdminCaller& caller, std::optional<uint32_t> add,
                                                   std::optional<uint32_t> target) = 0;
  /// How many the launcher is to run: as many as were last asked for by ScaleWorkers, in whatever life of the
  /// coordinator, unless this start says something else than the start of that life did. At most as many as
  /// the run can have now; the rest is logged.
  virtual uint32_t WantedWorkers() const = 0;
  /// Workers that an operator drained, and that have not joined since, and those that were told to drain and
  /// have not obeyed yet: the launcher leaves them alone.
  virtual std::vector<WorkerName> DrainedWorkers() const = 0;
  /// kind "none" when there is none.
  virtual LauncherView Launched() = 0;

  /// Blocks until it is durable; rounds go on meanwhile. AlreadyExists; InvalidArgument for a name.
  virtual absl::StatusOr<CheckpointView> CreateCheckpoint(const AdminCaller& caller,
                                                          const std::string& name) = 0;
  /// `check`: read every file and compare its checksum.
  virtual absl::StatusOr<std::vector<CheckpointView>> ListCheckpoints(bool check) = 0;
  /// Commits the old contents as version head + 1 under a new epoch. DataLoss naming the damaged file, and
  /// nothing is changed.
  virtual absl::StatusOr<RestoreResult> RestoreCheckpoint(const AdminCaller& caller,
                                                          const std::string& name) = 0;
  virtual absl::Status DeleteCheckpoint(const AdminCaller& caller, const std::string& name) = 0;

  /// Fragment by fragment, vector by vector, without gaps; the sink is called on the caller's thread.
  /// NotFound: no such version or checkpoint (any more); the message names existing ones. FailedPrecondition:
  /// no parameters yet. ResourceExhausted: too many readers, or too little memory for a checkpoint that must
  /// be replayed.
  virtual absl::Status ReadParameters(const ReadParametersCall& call, ParameterSink& sink) = 0;

  /// `report` is called on the caller's thread, once per version; false ends the work.
  using VerifyReport = std::function<bool(const VerifyView&)>;
  virtual absl::Status Verify(std::optional<Version> version, const VerifyReport& report) = 0;

  /// The audit line of an action that is carried out elsewhere: `action` for counting, `what` was asked for,
  /// what came of it (`done` when OK).
  virtual void Audit(const AdminCaller& caller, std::string_view action, const std::string& what,
                     const absl::Status& outcome, const std::string& done) = 0;

  virtual MetricsView GetMetrics() = 0;
  /// The records of rounds that made versions above `after`, ascending, at most `limit` (at most
  /// kMaxListedRounds). NotFound: no such fragment, or the run is not seeded.
  virtual absl::StatusOr<RoundListView> ListRounds(FragmentId fragment, Version after, uint32_t limit) = 0;
  /// All points in order of time; false from `sink` ends it.
  using MetricSink = std::function<bool(const MetricPointView&)>;
  virtual absl::Status ExportMetrics(const MetricSink& sink) = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_ADMIN_CONTROL_H_
