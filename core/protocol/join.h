#ifndef ATOLL_CORE_PROTOCOL_JOIN_H_
#define ATOLL_CORE_PROTOCOL_JOIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "core/manifest.h"
#include "core/membership.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/push.h"
#include "core/protocol/run_state.h"

namespace atl {

/// The worker's token files; `fingerprint` is the SHA-256 that is equal for equal files (Dataset on the
/// wire).
struct DatasetSummary {
  std::string tokenizer = {};
  uint32_t vocabulary = 0;
  uint64_t train_tokens = 0;
  std::string fingerprint = {};
};

/// What a worker computes with (Capabilities on the wire).
struct DeviceDescription {
  std::string software_version = {};  // of the worker
  std::string device = {};            // cpu, cuda:0
  std::string device_name = {};       // model of the processor or the accelerator
  uint32_t threads = 0;               // that compute
  uint64_t memory_bytes = 0;          // main memory that it may use; 0: not known
  uint64_t device_memory_bytes = 0;   // of the accelerator; 0: there is none, or it is not known
  uint32_t ranks = 1;                 // processes that train together as this worker
};

struct JoinCall {
  WorkerName worker = {};
  std::string secret = {};
  std::string public_key = {};  // Ed25519: what its confirmations are signed with; empty: none are sent
  WorkerRole role = WorkerRole::kTrainer;
  std::string manifest_hash = {};  // empty: the model is not known yet
  /// Of that hash. Optional: a rejection then says what differs from the run's model.
  std::optional<Manifest> manifest = {};
  DeviceDescription device = {};
  std::optional<DatasetSummary> dataset = {};  // trainers and evaluators
  std::string expected_run = {};               // empty: any
  std::string address = {};  // IP address that the call came from, known to the coordinator only

  /// A worker that does not know the model yet only asks for the configuration.
  bool BecomesMember() const { return !manifest_hash.empty() || role == WorkerRole::kObserver; }
};

/// The first minor version of the protocol whose coordinators know averaged tensors.
inline constexpr uint32_t kMinorWithAveragedTensors = 1;

struct JoinReply {
  uint32_t protocol_minor = 0;  // of the coordinator; set by the side that receives the reply
  MemberRef member;             // the caller, in its new life
  Duration lease{};
  Duration heartbeat{};
  std::string config_bytes;  // serialised RunConfig
  uint64_t config_version = 0;
  std::string manifest_hash;  // empty: the run is not seeded
  std::optional<DataPart> data;
  std::vector<FragmentHead> fragments;  // empty until the run is seeded
  RunState state = RunState::kUnknown;
  bool seed_granted = false;
  bool returning = false;
  std::vector<PushKey> accepted;  // already held, on the current bases
  uint64_t committed_tokens = 0;
  uint64_t total_tokens = 0;
  std::optional<Manifest> manifest;  // of a seeded run: for observers, and of an external model for all
  uint64_t last_event_sequence = 0;  // of the newest event
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_JOIN_H_
