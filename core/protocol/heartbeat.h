#ifndef ATOLL_CORE_PROTOCOL_HEARTBEAT_H_
#define ATOLL_CORE_PROTOCOL_HEARTBEAT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "core/confirmation.h"
#include "core/protocol/join.h"
#include "core/protocol/run_state.h"
#include "core/time_use.h"

namespace atl {

/// Values of WorkerPhase in types.proto.
enum class WorkerPhase : uint8_t {
  kUnknown = 0,
  kJoining = 1,
  kSeeding = 2,
  kPulling = 3,
  kEvaluating = 4,
  kTraining = 5,
  kPushing = 6,
  kWaiting = 7,
  kLeaving = 8,
};

/// A worker's account of itself; shown, never trusted for the mathematics (Progress on the wire).
struct ProgressReport {
  WorkerPhase phase = WorkerPhase::kUnknown;
  Version base;
  uint32_t step = 0;   // inner steps done in this round
  uint32_t steps = 0;  // of so many
  double loss = 0;     // of the last inner step, nats per token
  double gradient_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;       // while computing, over the last steps (ComputeRate)
  double model_flops_per_second = 0;  // floating-point operations of the model; 0: not known
  double peak_flops_per_second = 0;   // what the devices could do at most; 0: not known
  uint64_t memory_bytes = 0;
  TimeSpent training;       // of the training thread, since the worker was made
  TimeSpent exchanges;      // of the threads beside it, together
  std::string waiting_for;  // in words; empty while it computes
};

/// One number that a task gave (docs/reference/evaluation.md).
struct TaskScore {
  std::string task = {};    // as in evaluation.tasks
  std::string metric = {};  // acc, acc_norm
  double value = 0;
  double standard_error = 0;  // 0: not known
  uint64_t questions = 0;
  friend bool operator==(const TaskScore&, const TaskScore&) = default;
};

/// Loss of the published parameters of one version on held-out text, and the scores of the tasks if they ran.
struct EvaluationReport {
  Version version = {};
  double loss = 0;  // nats per token
  uint64_t tokens = 0;
  std::vector<TaskScore> tasks = {};
  friend bool operator==(const EvaluationReport&, const EvaluationReport&) = default;
};

/// What a heartbeat's reply tells a worker to do. Values of Command in types.proto.
enum class WorkerCommand : uint8_t { kNone = 1, kDrain = 2, kRestart = 3, kStop = 4, kResync = 5 };

/// What a heartbeat tells.
struct HeartbeatCall {
  ProgressReport progress = {};
  std::vector<EvaluationReport> evaluations = {};
  std::vector<Confirmation> confirmations = {};
  std::optional<DeviceDescription> device = std::nullopt;  // an older worker says it in Join only
};

struct HeartbeatReply {
  Duration lease{};
  RunState state = RunState::kUnknown;
  std::vector<FragmentHead> fragments = {};
  bool seed_granted = false;
  WorkerCommand command = WorkerCommand::kNone;  // repeated until it was obeyed
  bool at_once = false;  // with drain and restart: do not finish the round, push what is done
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_HEARTBEAT_H_
