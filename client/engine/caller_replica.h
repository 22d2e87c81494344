#ifndef ATOLL_CLIENT_ENGINE_CALLER_REPLICA_H_
#define ATOLL_CLIENT_ENGINE_CALLER_REPLICA_H_

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/caller_link.h"
#include "client/ipc/shared_memory.h"
#include "client/sync/replica.h"
#include "common/log.h"
#include "core/protocol/heartbeat.h"

namespace atl {

/// What a CallerReplica works with; all of it outlives the replica.
struct CallerParts {
  CallerLink* link = nullptr;
  ipc::SharedMemory* values = nullptr;
  ipc::SharedMemory* state = nullptr;
  std::function<ProgressReport()> progress;
  bool* said_nothing_held_out = nullptr;  // by any replica of this worker: each configuration makes a new one
  Logger log;
  /// The caller cannot do what it was asked: the worker is to leave without a push. After it every call is
  /// Cancelled.
  std::function<void(const absl::Status& why)> failed;
};

/// The caller's model: each call becomes an event, which the caller answers. Used by one thread at a time.
class CallerReplica final : public Replica {
 public:
  CallerReplica(CallerParts parts, Manifest manifest)
      : parts_(std::move(parts)), manifest_(std::move(manifest)) {}

  /// ATL_EVENT_JOINED, before the first use.
  absl::Status Introduce(const std::string& run_json);

  const Manifest& manifest() const override { return manifest_; }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override;
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override;
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override;
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override;
  uint64_t samples_consumed() const override { return samples_; }
  absl::Status Seek(uint64_t samples_consumed) override;
  absl::Status SaveState(ReplicaState& state) override;
  absl::Status LoadState(const ReplicaState& state) override;
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t max_batches) override;

 private:
  /// Asks, and ends the worker when the caller cannot answer. `also`: an outcome besides ATL_DONE that is
  /// allowed.
  absl::StatusOr<ipc::Answer> Ask(ipc::Event event, const char* name,
                                  std::initializer_list<atl_outcome> also = {});
  /// What Evaluate returns when the caller declines. Logged once in a worker's life.
  absl::Status NothingHeldOut(const ipc::Answer& answer);
  absl::Status Fail(const absl::Status& why);
  absl::StatusOr<ipc::Event> FragmentEvent(atl_event_kind kind, const FragmentLayout& fragment);

  const CallerParts parts_;
  const Manifest manifest_;
  uint32_t partition_ = 0;
  uint32_t partitions_ = 1;
  uint64_t samples_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_CALLER_REPLICA_H_
