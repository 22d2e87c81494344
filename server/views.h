#ifndef ATOLL_SERVER_VIEWS_H_
#define ATOLL_SERVER_VIEWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "core/offences.h"
#include "core/protocol/heartbeat.h"
#include "core/protocol/join.h"
#include "core/protocol/run_state.h"

// What the coordinator shows of itself, in plain values. Each mirrors a message of atoll/v1/types.proto or
// admin.proto, where the fields are described; server/rpc converts.

namespace atl {

/// An EvaluationReport and its time.
struct EvaluationView {
  Version version;
  double loss = 0;  // nats per token
  uint64_t tokens = 0;
  int64_t unix_ns = 0;  // when it was reported; 0: just now
  std::vector<TaskScore> tasks = {};
};

struct RoundSummaryView {
  FragmentId fragment;
  Version version;
  uint32_t contributions = 0;
  double train_loss = 0;
  uint64_t tokens = 0;
  uint64_t committed_tokens = 0;
  double open_seconds = 0;
  double commit_seconds = 0;
  uint64_t payload_bytes = 0;
  std::string close_reason;
  int64_t closed_unix_ns = 0;
  double epsilon = 0;  // spent so far, against observers of pushes; 0: no privacy
};

/// Values of RunEvent.Kind in types.proto.
enum class EventKind : uint8_t {
  kUnknown = 0,
  kWorkerJoined = 1,
  kWorkerLeft = 2,
  kWorkerLost = 3,
  kSeeded = 4,
  kRoundClosed = 5,
  kEvaluated = 6,
  kContributionRefused = 7,
  kRunHeld = 8,
  kRunFinished = 9,
  kStorageFailing = 10,
  kStorageRecovered = 11,
  kCoordinatorStarted = 12,
  kWorkerReturned = 13,
  kAdminAction = 14,
  kReplicaDiverged = 15,
  kCheckpointCreated = 16,
  kCheckpointDeleted = 17,
  kCheckpointFailed = 18,
  kRunRestored = 19,
  kConfigChanged = 20,
  kWorkerLaunched = 21,
  kWorkerExited = 22,
  kRunPaused = 23,
  kRunResumed = 24,
  kRunStopped = 25,
  kWorkerDrained = 26,
  kWorkerBanned = 27,
  kContributionSuspect = 28,
  kJoinRefused = 29
};

struct EventView {
  uint64_t sequence = 0;
  int64_t unix_ns = 0;
  EventKind kind = EventKind::kUnknown;
  std::string message;
  WorkerName worker;
  FragmentId fragment;
  Version version;
  std::string trace_id;  // of the call that it came of; empty: of none
  bool warns = false;    // to be logged as a warning, although its kind does not say it
  std::optional<RoundSummaryView> round;
  std::optional<EvaluationView> evaluation;
};

struct FragmentStatusView {
  FragmentId id;
  Version version;
  Version stored;
  uint64_t elements = 0;
  ContentHash published;
  double open_seconds = 0;      // of the open round, as the next two; 0: there is none
  double deadline_seconds = 0;  // when it is to close, at the latest
  uint32_t quorum = 0;          // contributions that let it close before everybody is there
  std::vector<WorkerName> arrived;
  std::vector<WorkerName> missing;
  std::string waiting_for;
  double wait_ends_in_s = 0;
};

/// One wait inside the coordinator.
struct WaitView {
  std::string what;
  std::vector<WorkerName> from;
  double ends_in_s = 0;  // 0: no limit
  double since_s = 0;    // 0: not known
};

/// A worker that is refused at Join at the moment.
struct RejectedJoinView {
  WorkerName worker;    // empty: not a valid name
  std::string address;  // of the last attempt
  std::string reason;
  std::string message;
  double since_s = 0;  // the first attempt
  double last_s = 0;
  uint64_t attempts = 0;
};

/// What the run has released of its workers so far (core/privacy.h).
struct PrivacyView {
  PrivacyOptions options;
  std::optional<double> epsilon;            // none: without noise there is no bound
  std::optional<double> published_epsilon;  // none: of this merge no bound is known
};

struct StatusView {
  std::string run_id;
  std::string run_name;
  Epoch epoch;
  RunState state = RunState::kStarting;
  std::string state_reason;
  double uptime_s = 0;
  double run_seconds = 0;          // of the run, not of the coordinator
  double compute_utilisation = 0;  // 0: not known
  std::string config_bytes;        // serialised RunConfig
  uint64_t config_version = 0;
  uint64_t parameters = 0;  // 0: not seeded
  uint32_t tensors = 0;
  std::vector<FragmentStatusView> fragments;
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  double position_steps = 0;
  uint64_t total_steps = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;
  double eta_seconds = 0;
  uint64_t push_bytes = 0;
  uint64_t pull_bytes = 0;
  uint64_t data_parallel_bytes = 0;
  int64_t last_closed_unix_ns = 0;  // when the newest round closed; 0: none has
  // Those that led to the head; rounds and evaluations that a restore abandoned are left out.
  std::vector<RoundSummaryView> rounds;
  std::vector<EvaluationView> evaluations;
  std::vector<EvaluationView> abandoned_evaluations = {};
  std::optional<EvaluationView> first_evaluation;
  std::optional<EvaluationView> scored = {};  // the newest that led to the head and has scores of tasks
  std::string data_directory;
  std::string storage_error;
  uint32_t live_trainers = 0;
  std::vector<WaitView> waiting = {};
  uint64_t last_event_sequence = 0;
  std::optional<PrivacyView> privacy = std::nullopt;  // none: not asked for
  std::vector<RejectedJoinView> refused_joins = {};
  uint64_t joins_refused = 0;  // attempts, since this coordinator started
};

struct WorkerView {
  WorkerName name;
  Incarnation incarnation;
  uint8_t role = 0;   // values of Role in types.proto
  std::string state;  // active, lost, left
  double lease_remaining_s = 0;
  DeviceDescription device;
  std::optional<DataPart> data;
  ProgressReport progress;
  double seconds_since_heartbeat = 0;
  uint64_t contributions_accepted = 0;
  uint64_t contributions_refused = 0;
  uint64_t push_bytes = 0;
  uint64_t pull_bytes = 0;
  uint32_t inner_steps = 0;     // of its latest plan
  double steps_per_second = 0;  // as measured; 0: not known
  bool banned = false;
  WorkerCommand pending_command = WorkerCommand::kNone;  // told with the next heartbeat
  std::optional<Version> confirmed = std::nullopt;       // newest version whose hash it has signed
  OffenceRecord offences = {};
};

}  // namespace atl

#endif  // ATOLL_SERVER_VIEWS_H_
