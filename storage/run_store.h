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
#include "core/protocol/heartbeat.h"
#include "storage/checkpoint.h"

// Stores a run: its identity, configuration, members, contributions, round records and versions. The protocol
// is in docs/reference/storage_format.md. Data written by a call that returned OK survives kill -9 and power
// loss.

namespace atl {

/// The identity of a run. `config` is an opaque serialised configuration.
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
  std::string author = {};  // "start", or the caller on the admin port
  std::string bytes;
  friend bool operator==(const ConfigEntry&, const ConfigEntry&) = default;
};

/// The stored record of a worker.
struct WorkerEntry {
  WorkerName name;
  std::string secret_hash;  // SHA-256 hex of the worker's secret
  Incarnation incarnation;  // the latest issued
  uint8_t role = 0;
  std::optional<uint32_t> partition;
  bool departed = false;                 // left or lost
  bool banned = false;                   // its name is rejected until an operator unbans it
  std::string public_key = {};           // Ed25519, 32 bytes; empty: it signs nothing
  std::string dataset_fingerprint = {};  // of the shared data that it joined with; empty: none
  uint8_t command = 0;                   // pending WorkerCommand, a number of the coordinator; 0: none
  bool command_at_once = false;
  uint64_t forgiven_until = 0;  // offences in versions up to this one no longer count
  friend bool operator==(const WorkerEntry&, const WorkerEntry&) = default;
};

/// The position up to which committed contributions have consumed a partition of the data.
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
  std::vector<TaskScore> tasks = {};
  friend bool operator==(const EvaluationEntry&, const EvaluationEntry&) = default;
};

/// Settings of the run that operators changed.
enum class RunMode : uint8_t { kRunning = 1, kPaused = 2, kStopped = 3 };
struct ControlEntry {
  RunMode mode = RunMode::kRunning;
  int64_t unix_ns = 0;
  std::string author = {};  // who asked for it
  std::string reason = {};
  std::optional<uint32_t> workers =
      std::nullopt;               // number that the launcher runs; nullopt: as given at the start
  uint32_t workers_at_start = 0;  // the number given at the start when that was requested
  friend bool operator==(const ControlEntry&, const ControlEntry&) = default;
};

/// A worker's signed statement about the published hash of a version (core/confirmation.h), kept as long as
/// the version.
struct ConfirmationEntry {
  FragmentId fragment;
  Version version;
  WorkerName worker;
  ContentHash published;  // as the worker computed it
  std::string signature;
  friend bool operator==(const ConfirmationEntry&, const ConfirmationEntry&) = default;
};

/// An event, stored for `atollctl events`. `bytes` is an opaque serialised event.
struct EventEntry {
  uint64_t sequence = 0;
  std::string bytes;
};

/// One fragment as found on open: `stored` is the newest version whose tensors are on disk, `head` the newest
/// committed; `to_replay` are the records of stored+1 .. head, ascending; `accepted` are the contributions of
/// this epoch that no round has included, on any base. `config_version` was the newest when the head was
/// made; the round on the head was opened with that configuration.
struct FragmentRecovery {
  FragmentId fragment;
  Version stored;
  Version head;
  std::vector<RoundRecord> to_replay;
  std::vector<Contribution> accepted;
  uint64_t config_version = 0;
};

/// A restore during which the process ended.
struct InterruptedRestore {
  std::string checkpoint;
  bool done = false;  // its epoch is active; false: it had changed nothing
};

/// The contents of the disk on open: small records in full, tensors by reference (ReadVersion, OpenPayload).
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
  std::optional<ControlEntry> control = std::nullopt;  // absent: the run was never paused or stopped
  /// Set if the directory is a checked checkpoint, copied or not, that has not begun its own epoch yet. Then
  /// only BeginEpoch may change the run.
  std::optional<CheckpointManifest> checkpoint = std::nullopt;
  /// Set if the previous process of this run ended in the middle of a restore.
  std::optional<InterruptedRestore> interrupted_restore = std::nullopt;
  /// Not empty: the run was to be seeded from this file or folder, and is not (RunStore::NoteImport).
  std::string interrupted_import = {};
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

/// A staged payload, readable (memory-mapped if the store supports it) while the object lives.
class Payload {
 public:
  virtual ~Payload() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  /// The file, for messages; empty if there is none.
  virtual std::string path() const { return ""; }
};

/// One contribution being received. Bytes are written in ascending order without gaps. Not thread-safe; one
/// upload per key at a time (a second Start for the same key fails with Aborted while the first lives).
/// Destroying an upload that was not accepted keeps the received bytes, so that it can be resumed until its
/// base is further behind the head than set by KeepLate.
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
  /// Discards the bytes.
  virtual void Discard() = 0;
};

/// The beginning of a range in one vector of a fragment: vector 0 is the parameters, 1.. the outer
/// optimizer's state.
struct VectorPosition {
  uint32_t vector = 0;
  uint64_t first = 0;  // element
};

/// A source of versions and payloads: a run, or a checkpoint of one. Thread-safe.
class VersionSource {
 public:
  virtual ~VersionSource() = default;

  /// NotFound: no such fragment. FailedPrecondition: not seeded.
  virtual absl::StatusOr<StoredEntry> Stored(FragmentId fragment) = 0;
  /// NotFound names the kept versions; DataLoss names the damaged chunk.
  virtual absl::Status ReadInto(const FragmentLayout& layout, Version version,
                                const FragmentTensorsTarget& target) = 0;
  /// Fills `values` with the elements from `from` on, for readers that cannot hold a whole vector. The same
  /// errors, and InvalidArgument for a range that the vector does not have.
  virtual absl::Status ReadRange(const FragmentLayout& layout, Version version, const VectorPosition& from,
                                 std::span<float> values) = 0;
  absl::StatusOr<FragmentTensors> ReadVersion(const FragmentLayout& layout, Version version);
  /// NotFound if it was not accepted or is no longer kept; DataLoss if it should exist but is gone.
  virtual absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) = 0;
};

/// A checked checkpoint, for reading. Never changes the disk.
struct OpenedCheckpoint {
  CheckpointManifest manifest;
  Recovery recovery;
  std::unique_ptr<VersionSource> source;
  /// kRestore: an end of the process while it lives counts as one in the middle of a restore. Null: not
  /// recorded.
  std::shared_ptr<const void> note = nullptr;
};

/// The contents with which RunStore::BeginEpoch replaces those of the run.
struct EpochStart {
  Epoch epoch;  // never used before in this run
  /// By fragment: `records[i]` is of this epoch, without contributions, and makes version head + 1.
  std::vector<FragmentLayout> layouts;
  std::vector<FragmentTensorsView> tensors;
  std::vector<RoundRecord> records;
  std::vector<PartitionEntry> partitions;  // all partitions; absent ones start at 0
  std::vector<WorkerEntry> workers = {};   // replace the records of these workers; the others stay
};

/// Thread-safe unless stated otherwise. If the disk is full, writes fail with ResourceExhausted and may be
/// retried. Partial writes are never visible.
class RunStore : public VersionSource {
 public:
  /// The state found on open; nullopt: an empty directory. Can be read once (FailedPrecondition after that).
  virtual absl::StatusOr<std::optional<Recovery>> Recover() = 0;

  /// Records that the run is to be seeded from `source`, until Seed has seeded it; before CreateRun in a new
  /// run. Recovery::interrupted_import tells a later process that this one did not come that far.
  virtual absl::Status NoteImport(const std::string& source) = 0;
  virtual absl::Status CreateRun(const RunIdentity& identity, const ConfigEntry& config) = 0;
  virtual absl::Status PutConfig(const ConfigEntry& config) = 0;
  virtual absl::Status PutWorker(const WorkerEntry& worker) = 0;
  /// Stores and removes the records of these workers, all in one synced write; names to be removed that have
  /// no record are ignored.
  virtual absl::Status ReplaceWorkers(const std::vector<WorkerEntry>& stored,
                                      const std::vector<WorkerName>& removed) = 0;
  virtual absl::Status PutEvaluation(const EvaluationEntry& evaluation) = 0;
  /// One per fragment, version and worker; a later one replaces it. Not synced by itself: it survives kill -9
  /// immediately, and power loss after the next synced write (the next acceptance, at the latest the next
  /// commit).
  virtual absl::Status PutConfirmation(const ConfirmationEntry& confirmation) = 0;
  /// Confirmations of one version, by worker. They are deleted together with the version's tensors.
  virtual absl::StatusOr<std::vector<ConfirmationEntry>> Confirmations(FragmentId fragment,
                                                                       Version version) = 0;
  /// FailedPrecondition if there is no run.
  virtual absl::Status PutControl(const ControlEntry& control) = 0;
  /// Not synced: an event may be lost with power, never reordered.
  virtual absl::Status AppendEvent(const EventEntry& event) = 0;
  /// Events with sequence > after, ascending, at most `limit`.
  virtual absl::StatusOr<std::vector<EventEntry>> ReadEvents(uint64_t after, size_t limit) = 0;

  /// Stores version 0 of all fragments atomically. `tensors[i]` belongs to `layouts[i]`.
  virtual absl::Status Seed(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                            const std::vector<FragmentTensorsView>& tensors) = 0;

  /// FailedPrecondition: not seeded, another epoch, a base above the head. AlreadyExists: accepted. Aborted:
  /// another upload of the key is alive. NotFound: no such fragment. The caller decides whether a base
  /// below the head is late or too late, and whether the key counted in a round so old that its payload is
  /// gone. No tensors of the base are needed here.
  virtual absl::StatusOr<std::unique_ptr<Upload>> StartUpload(const ContributionKey& key,
                                                              uint64_t payload_bytes) = 0;

  /// Size of a partial upload that can be resumed. 0: there is none, or the upload is in progress, or its key
  /// was accepted.
  /// Changes nothing on disk or in memory.
  virtual uint64_t StagedBytes(const ContributionKey& key) = 0;

  /// Partial uploads on bases up to this many versions below the head can be resumed; initially 0.
  virtual void KeepLate(uint32_t versions) = 0;

  /// Writes one synced record: the round, the new head, and the advanced `partitions`. Requires
  /// record.version == head + 1, and that every contribution was accepted as in the record and is in no other
  /// round (FailedPrecondition). After this the version exists. The same record drops accepted contributions
  /// of the fragment that no round has included, because a round includes all contributions except those that
  /// cannot be merged. So no contribution may be in the middle of its acceptance. After an error nothing has
  /// changed, and the call may be repeated.
  virtual absl::Status CommitRound(const RoundRecord& record,
                                   const std::vector<PartitionEntry>& partitions) = 0;

  /// Writes the tensors of a committed version after its commit, marks it stored (one synced record), then
  /// drops versions older than the newest `keep` and contributions that no retained version needs for replay.
  /// Versions may be skipped. The version stored last may be stored again, which only repeats the dropping.
  /// One call per fragment at a time.
  virtual absl::Status StoreVersion(const FragmentLayout& layout, Version version,
                                    const FragmentTensorsView& tensors, uint32_t keep) = 0;

  /// NotFound if neither a round nor a restore made the version.
  virtual absl::StatusOr<RoundRecord> ReadRound(FragmentId fragment, Version version) = 0;

  /// Creates a consistent copy of the run, without using space for shared files, while everything except
  /// StoreVersion continues. It survives power loss after the call returns. AlreadyExists; InvalidArgument
  /// for an invalid name; FailedPrecondition if not seeded. One at a time.
  virtual absl::StatusOr<CheckpointEntry> CreateCheckpoint(const CheckpointRequest& request) = 0;
  /// By time of creation. `check`: reads every file and compares its checksum.
  virtual absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(bool check) = 0;
  /// Checks every file first. NotFound; DataLoss names the file.
  virtual absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(const std::string& name, CheckpointUse use) = 0;
  /// NotFound.
  virtual absl::Status DeleteCheckpoint(const std::string& name) = 0;

  /// Replaces the contents of the run, as version head + 1 of every fragment under a new epoch: tensors
  /// first, then one synced batch that changes everything at once. Drops contributions that no round
  /// included; keeps those of retained versions, so that these can still be verified. No StoreVersion or
  /// CommitRound may be in progress. InvalidArgument if `start` does not fit the run. After an error nothing
  /// has changed.
  virtual absl::Status BeginEpoch(const EpochStart& start) = 0;

  /// Bytes on disk of all files of the run; a file with several names counts once.
  virtual absl::StatusOr<uint64_t> DiskBytes() = 0;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_RUN_STORE_H_
