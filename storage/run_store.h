#ifndef ATOLL_STORAGE_RUN_STORE_H_
#define ATOLL_STORAGE_RUN_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "storage/checkpoint.h"

// Where a run lives: its identity, configuration, members, contributions, round records and versions.
// The protocol is docs/reference/storage_format.md. What a call that returned OK wrote survives kill -9 and
// power loss.

namespace atl {

/// Who this run is. `config` is an opaque serialised configuration (the storage does not look into it).
struct RunIdentity {
  std::string run_id;  // 16 hex digits
  std::string name;
  Epoch epoch;
  int64_t created_unix_ns = 0;
  uint32_t shards = 0;
  uint64_t chunk_elements = 0;
  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

struct ConfigEntry {
  uint64_t version = 0;  // dense from 1
  int64_t recorded_unix_ns = 0;
  std::string author = {};  // "start", or who asked by the admin port
  std::string bytes;
  friend bool operator==(const ConfigEntry&, const ConfigEntry&) = default;
};

/// What is remembered of a worker between its lives.
struct WorkerEntry {
  WorkerName name;
  std::string secret_hash;  // SHA-256 hex of the worker's secret
  Incarnation incarnation;  // the latest issued
  uint8_t role = 0;
  std::optional<uint32_t> partition;
  bool departed = false;                 // left or lost
  bool banned = false;                   // its name is refused until an operator says otherwise
  std::string public_key = {};           // Ed25519, 32 bytes; empty: it signs nothing
  std::string dataset_fingerprint = {};  // of the shared data that it joined with; empty: none
  uint8_t order = 0;  // what it is still to be told, a number of the coordinator's; 0: nothing
  bool order_at_once = false;
  uint64_t forgiven_until = 0;  // offences in versions up to this one are not held against it any more
  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};

/// How far a partition of the data was consumed by committed contributions.
struct PartitionEntry {
  uint32_t partition = 0;
  uint64_t samples_consumed = 0;
  friend bool operator==(const PartitionEntry&, const PartitionEntry&) = default;
};

struct EvaluationEntry {
  FragmentId fragment;
  Version version;
  double loss = 0;
  uint64_t tokens = 0;
  int64_t unix_ns = 0;
  friend bool operator==(const EvaluationEntry&, const EvaluationEntry&) = default;
};

/// What an operator has made of the run.
enum class RunMode : uint8_t { kRunning = 1, kPaused = 2, kStopped = 3 };
struct ControlEntry {
  RunMode mode = RunMode::kRunning;
  int64_t unix_ns = 0;
  std::string author = {};  // who asked for it
  std::string reason = {};
  std::optional<uint32_t> workers =
      std::nullopt;               // that the launcher is to run; none: as many as the start says
  uint32_t workers_at_start = 0;  // what the start said when that was asked for
  friend bool operator==(const ControlEntry&, const ControlEntry&) = default;
};

/// A worker's signed word on the published hash of a version (core/confirmation.h), kept as long as the
/// version.
struct ConfirmationEntry {
  FragmentId fragment;
  Version version;
  WorkerName worker;
  ContentHash published;  // as the worker computed it
  std::string signature;
  friend bool operator==(const ConfirmationEntry&, const ConfirmationEntry&) = default;
};

/// A milestone, kept for `atollctl events`. `bytes` is an opaque serialised event.
struct EventEntry {
  uint64_t sequence = 0;
  std::string bytes;
};

/// One fragment as found on open: `stored` is the newest version whose tensors are on disk, `head` the newest
/// committed; `to_replay` are the records of stored+1 .. head, ascending; `accepted` are the contributions of
/// this epoch that no round has taken, on whatever base. `config_version` was the newest when the head was
/// made: the round on it was opened with that configuration.
struct FragmentRecovery {
  FragmentId fragment;
  Version stored;
  Version head;
  std::vector<RoundRecord> to_replay;
  std::vector<Contribution> accepted;
  uint64_t config_version = 0;
};

/// A restore that a process did not live to report.
struct InterruptedRestore {
  std::string checkpoint;
  bool done = false;  // its epoch is the run's; false: it had changed nothing
};

/// Everything that was on disk, small things in full, tensors by reference (ReadVersion, OpenPayload).
struct Recovery {
  RunIdentity identity;
  std::vector<ConfigEntry> configs;          // ascending; never empty
  std::optional<Manifest> manifest;          // absent: not seeded
  std::vector<FragmentRecovery> fragments;   // empty: not seeded
  std::vector<WorkerEntry> workers;          // by name
  std::vector<PartitionEntry> partitions;    // by partition
  std::vector<RoundRecord> rounds;           // every record kept, ascending by (fragment, version)
  std::vector<EvaluationEntry> evaluations;  // ascending by (fragment, version)
  uint64_t last_event_sequence = 0;
  std::optional<ControlEntry> control = std::nullopt;  // absent: nobody ever paused or stopped it
  /// Set when the directory is a checkpoint, copied or not, that was checked and has not begun its own epoch
  /// yet: nothing but BeginEpoch may change the run.
  std::optional<CheckpointManifest> checkpoint = std::nullopt;
  /// Set when the process that had this run before ended in the middle of a restore.
  std::optional<InterruptedRestore> interrupted_restore = std::nullopt;
};

/// The versions of a fragment whose tensors are in the shards, ascending, never empty; with the shape that
/// says which chunks each of them has.
struct StoredEntry {
  FragmentId fragment;
  Epoch epoch;
  uint64_t elements = 0;       // of each vector
  uint32_t state_vectors = 0;  // outer optimizer state beside theta
  std::vector<Version> versions;
  friend bool operator==(const StoredEntry&, const StoredEntry&) = default;
};

/// The tensors of one fragment at one version: flat float32 vectors in layout order, each layout.elements
/// long.
struct FragmentTensors {
  std::vector<float> parameters;
  std::vector<std::vector<float>> state;  // outer optimizer state vectors
};
struct FragmentTensorsView {
  std::span<const float> parameters;
  std::vector<std::span<const float>> state;
};
struct FragmentTensorsTarget {  // to be filled
  std::span<float> parameters;
  std::vector<std::span<float>> state;
};

/// A staged payload, readable (memory-mapped where the store can) as long as the object lives.
class Payload {
 public:
  virtual ~Payload() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  /// The file, for messages; empty when there is none.
  virtual std::string path() const { return ""; }
};

/// One contribution on its way in. Bytes are written in ascending order without gaps. Not thread-safe; one
/// upload per key at a time (a second Start for the same key fails with Aborted while the first lives).
/// Destroying an upload that was not accepted leaves what arrived so that it can be resumed, until its base
/// is further behind the head than KeepLate says.
class Upload {
 public:
  virtual ~Upload() = default;
  virtual uint64_t received_bytes() const = 0;
  virtual absl::Status Append(std::span<const std::byte> data) = 0;
  /// The payload as staged so far, for checking before it is accepted.
  virtual absl::StatusOr<std::unique_ptr<Payload>> View() = 0;
  /// Makes payload and record durable (one fsync + one synced record); after OK it may be acknowledged.
  /// contribution.key and payload_bytes must match the upload (InvalidArgument). After ResourceExhausted it
  /// may be repeated on this upload; received_bytes says whether bytes must be sent again.
  virtual absl::Status Accept(const Contribution& contribution) = 0;
  /// Throws the bytes away.
  virtual void Discard() = 0;
};

/// Where versions and payloads can be read: a run, or a checkpoint of one. Thread-safe.
class VersionSource {
 public:
  virtual ~VersionSource() = default;

  /// NotFound: no such fragment. FailedPrecondition: not seeded.
  virtual absl::StatusOr<StoredEntry> Stored(FragmentId fragment) = 0;
  /// NotFound naming the versions that are kept; DataLoss naming the chunk that is damaged.
  virtual absl::Status ReadInto(const FragmentLayout& layout, Version version,
                                const FragmentTensorsTarget& target) = 0;
  absl::StatusOr<FragmentTensors> ReadVersion(const FragmentLayout& layout, Version version);
  /// NotFound when not accepted or not kept any more; DataLoss when it was promised and is gone.
  virtual absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) = 0;
};

/// A checkpoint that was checked, for reading. Nothing on disk changes by it.
struct OpenedCheckpoint {
  CheckpointManifest manifest;
  Recovery recovery;
  std::unique_ptr<VersionSource> source;
  /// While it lives, the end of the process counts as one in the middle of a restore. Null: not noted.
  std::shared_ptr<const void> note = nullptr;
};

/// What RunStore::BeginEpoch puts in the place of the run's contents.
struct EpochStart {
  Epoch epoch;  // never used before in this run
  /// By fragment: `records[i]` is of this epoch, without contributions, and makes version head + 1.
  std::vector<FragmentLayout> layouts;
  std::vector<FragmentTensorsView> tensors;
  std::vector<RoundRecord> records;
  std::vector<PartitionEntry> partitions;  // all there are: others begin anew
};

/// Thread-safe unless said otherwise. All writes are refused with ResourceExhausted when the disk is full,
/// and may be repeated; nothing half-written is ever visible.
class RunStore : public VersionSource {
 public:
  /// What was found on open; nullopt: an empty directory. Read once (FailedPrecondition after that).
  virtual absl::StatusOr<std::optional<Recovery>> Recover() = 0;

  virtual absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) = 0;
  virtual absl::Status PutConfig(const ConfigEntry& config) = 0;
  virtual absl::Status PutWorker(const WorkerEntry& worker) = 0;
  /// Stores and removes the records of these workers, all in one synced write; names to be removed that have
  /// no record are ignored.
  virtual absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                                      const std::vector<WorkerName>& removed) = 0;
  virtual absl::Status PutEvaluation(const EvaluationEntry& evaluation) = 0;
  /// One per fragment, version and worker; the last one stands. Not synced by itself: it survives kill -9 at
  /// once, and power loss from the next synced write on (the next acceptance, at the latest the next commit).
  virtual absl::Status PutConfirmation(const ConfirmationEntry& confirmation) = 0;
  /// Of one version, by worker. Those of a version go with its tensors.
  virtual absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment,
                                                                       Version version) = 0;
  /// FailedPrecondition when there is no run.
  virtual absl::Status PutControl(const ControlEntry& control) = 0;
  /// Not synced: an event may be lost with power, never reordered.
  virtual absl::Status AppendEvent(const EventEntry& event) = 0;
  /// Events with sequence > after, ascending, at most `limit`.
  virtual absl::StatusOr<std::vector<EventEntry>> ReadEvents(uint64_t after, size_t limit) = 0;

  /// Version 0 of all fragments, as a whole or not at all. `tensors[i]` belongs to `layouts[i]`.
  virtual absl::Status Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                            const std::vector<FragmentTensorsView>& tensors) = 0;

  /// FailedPrecondition: not seeded, another epoch, a base above the head. AlreadyExists: accepted. Aborted:
  /// another upload of the key is alive. NotFound: no such fragment. Whether a base below the head is late or
  /// too late, and whether the key counted in a round so old that its payload is gone, is the caller's to
  /// know: no tensors of the base are needed here.
  virtual absl::StatusOr<std::unique_ptr<Upload>> StartUpload(const ContributionKey& key,
                                                              uint64_t payload_bytes) = 0;

  /// How much of a partial upload waits to be resumed. 0: nothing does, or the upload is under way, or its
  /// key was accepted. Changes nothing, on disk or in memory.
  virtual uint64_t StagedBytes(const ContributionKey& key) = 0;

  /// Partial uploads on bases up to so many versions below the head can be resumed; 0 until told otherwise.
  virtual void KeepLate(uint32_t versions) = 0;

  /// One synced record: the round, the new head, and `partitions` advanced. Requires record.version == head +
  /// 1 and every contribution accepted, as the record has it, and in no other round (FailedPrecondition). The
  /// version exists from here on. Contributions of the fragment that were accepted and that no round has
  /// taken, this one neither, are let go of in the same record: a round takes all that there are, and leaves
  /// out only what cannot be merged. So none may be just being accepted. After an error nothing happened, and
  /// the call may be repeated.
  virtual absl::Status CommitRound(const RoundRecord& record,
                                   const std::vector<PartitionEntry>& partitions) = 0;

  /// Writes the tensors of a committed version behind it, marks it stored (one synced record), then drops
  /// versions older than the newest `keep` and the contributions that no retained version needs for replay.
  /// Versions may be passed over; the version stored last may be stored again, which repeats the dropping
  /// only. One call per fragment at a time.
  virtual absl::Status StoreVersion(const FragmentLayout& layout, Version version,
                                    const FragmentTensorsView& tensors, uint32_t keep) = 0;

  /// NotFound when no round and no restore made the version.
  virtual absl::StatusOr<RoundRecord> ReadRound(FragmentId fragment, Version version) = 0;

  /// A consistent copy of the run that costs no space for what it shares with it, while everything but
  /// StoreVersion goes on. Survives power loss once it returns. AlreadyExists; InvalidArgument for a name;
  /// FailedPrecondition: not seeded. One at a time.
  virtual absl::StatusOr<CheckpointEntry> CreateCheckpoint(const CheckpointRequest& request) = 0;
  /// By time of creation. `check`: reads every file and compares its checksum.
  virtual absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(bool check) = 0;
  /// Checks every file first. NotFound; DataLoss naming the file.
  virtual absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& name) = 0;
  /// NotFound.
  virtual absl::Status DeleteCheckpoint(const std::string& name) = 0;

  /// Gives the run other contents, as version head + 1 of every fragment and under a new epoch: tensors
  /// first, then one synced batch that moves everything at once. Contributions that no round took are gone
  /// after it; those of retained versions stay, so that these can still be verified. No StoreVersion and no
  /// CommitRound may be under way. InvalidArgument when `start` does not fit the run; after an error nothing
  /// happened.
  virtual absl::Status BeginEpoch(const EpochStart& start) = 0;

  /// Bytes on disk, all files of the run, each once however many names it has.
  virtual absl::StatusOr<uint64_t> DiskBytes() = 0;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_RUN_STORE_H_
