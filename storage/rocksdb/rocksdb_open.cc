#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/checkpoint_payloads.h"
#include "storage/rocksdb/load_run.h"
#include "storage/rocksdb/restore_note.h"
#include "storage/rocksdb/rocksdb_run_store.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atoll {
namespace {

/// What stands in a new volume: lost+found, and the hidden entries of Kubernetes' mounts.
bool IsOfTheVolume(const std::string& name) { return name.starts_with('.') || name == "lost+found"; }

/// A slip on the command line must not mix a run with other files.
absl::Status CheckOurs(const DataDir& dir) {
  const auto names = ListDir(dir.root);
  if (!names.ok()) return names.status();
  const std::string ours[] = {dir.lock(),
                              dir.meta(),
                              dir.shards(),
                              dir.contributions(),
                              dir.checkpoints(),
                              dir.checkpoint_manifest(),
                              dir.checkpoint_begun(),
                              JoinPath(dir.root, "access"),
                              JoinPath(dir.root, "workers")};
  std::string stranger;
  for (const std::string& name : *names) {
    if (std::ranges::find(ours, JoinPath(dir.root, name)) != std::end(ours)) return absl::OkStatus();
    if (stranger.empty() && !IsOfTheVolume(name)) stranger = name;
  }
  if (stranger.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is no data directory, and it is not empty: it holds '%s'; name a folder that is "
                      "empty or does not exist",
                      dir.root, stranger));
}

absl::Status CheckDirectory(const RocksDbStoreOptions& options) {
  if (options.create_if_missing) {
    ATOLL_RETURN_IF_ERROR(CreateDirs(options.data_dir));
    return CheckOurs({.root = options.data_dir});
  }
  if (FileExists(JoinPath(options.data_dir, "meta"))) return absl::OkStatus();
  return absl::NotFoundError(absl::StrFormat("%s holds no run", options.data_dir));
}

/// A checkpoint that is used as a data directory is checked file by file, once: from then on it is written
/// to, and a note takes the place of its manifest until the new epoch has begun.
absl::Status AdmitCheckpoint(const DataDir& dir) {
  auto manifest = ReadCheckpointManifest(dir.checkpoint_manifest());
  if (absl::IsNotFound(manifest.status())) return absl::OkStatus();
  if (!manifest.ok()) return manifest.status();
  const absl::Status whole = CheckCheckpoint(dir.root, *manifest, FileCheck::kContents);
  if (!whole.ok()) {
    return absl::DataLossError(absl::StrFormat("checkpoint '%s' in %s cannot be used: %s", manifest->name,
                                               dir.root, std::string(whole.message())));
  }
  ATOLL_RETURN_IF_ERROR(RenameFile(dir.checkpoint_manifest(), dir.checkpoint_begun()));
  return FsyncDir(dir.root);
}

/// Whether the epoch of a checkpoint is still to be left.
absl::StatusOr<std::optional<CheckpointManifest>> BegunCheckpoint(const DataDir& dir,
                                                                  const Recovery& recovery) {
  auto manifest = ReadCheckpointManifest(dir.checkpoint_begun());
  if (absl::IsNotFound(manifest.status())) return std::nullopt;
  if (!manifest.ok()) return manifest.status();
  if (manifest->epoch == recovery.identity.epoch) return *std::move(manifest);
  // The new epoch is there; a crash left only the note.
  ATOLL_RETURN_IF_ERROR(RemoveFile(dir.checkpoint_begun()));
  return std::nullopt;
}

/// Every shard's folder is there, and no other: RocksDB would make an empty one without a word.
absl::Status CheckShardFolders(const DataDir& dir, const RunIdentity& identity) {
  const auto names = ListDir(dir.shards());
  if (!names.ok()) {
    return absl::DataLossError(
        absl::StrFormat("%s cannot be listed: %s", dir.shards(), names.status().ToString()));
  }
  for (uint32_t i = 0; i < identity.shards; ++i) {
    const std::string name = ShardSet::FolderName(i);
    if (std::find(names->begin(), names->end(), name) != names->end()) continue;
    return absl::DataLossError(absl::StrFormat("shard folder %s is missing; the run has %d",
                                               JoinPath(dir.shards(), name), identity.shards));
  }
  if (names->size() == identity.shards) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s holds %d folders, but the run has %d shards: is it "
                      "mixed with another run's?",
                      dir.shards(), names->size(), identity.shards));
}

absl::Status CheckPayload(const ContributionFolder& folder, const Contribution& contribution) {
  const std::string path = folder.PathOf(contribution.key);
  const auto size = FileSize(path);
  if (size.ok() && *size == contribution.payload_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s was accepted with %d bytes, but its payload %s %s", Describe(contribution.key),
      contribution.payload_bytes, path, size.ok() ? absl::StrFormat("has %d", *size) : "cannot be read"));
}

/// What replaying needs and what the open round has accepted must be there. Of a checkpoint the open round is
/// not needed: its contributions cannot enter the epoch that is about to begin.
absl::Status CheckPayloads(const ContributionFolder& folder, const Recovery& recovery) {
  for (const FragmentRecovery& fragment : recovery.fragments) {
    for (const RoundRecord& round : fragment.to_replay) {
      for (const Contribution& c : round.contributions) ATOLL_RETURN_IF_ERROR(CheckPayload(folder, c));
    }
    if (recovery.checkpoint) continue;
    for (const Contribution& c : fragment.accepted) ATOLL_RETURN_IF_ERROR(CheckPayload(folder, c));
  }
  return absl::OkStatus();
}

ContributionFolder::Fate FateOf(const RunLedger& ledger, const ContributionKey& key) {
  using Fate = ContributionFolder::Fate;
  if (ledger.accepted(key) != nullptr) return Fate::kAccepted;
  const bool resumable = ledger.identity() && key.epoch == ledger.identity()->epoch &&
                         key.fragment.value() < ledger.fragment_count();
  return resumable ? Fate::kPartial : Fate::kGarbage;
}

/// Opens the shards of a run and removes what no record names: versions above the newest stored one, half a
/// seed, versions whose removal was cut short.
absl::Status RecoverShards(RocksDbRunStore::Parts& parts) {
  const RunIdentity& identity = *parts.ledger.identity();
  ATOLL_RETURN_IF_ERROR(CheckShardFolders(parts.dir, identity));
  ATOLL_ASSIGN_OR_RETURN(parts.shards, OpenShards(parts.dir, identity));
  std::vector<StoredEntry> stored;
  for (uint32_t i = 0; i < parts.ledger.fragment_count(); ++i)
    stored.push_back(parts.ledger.stored(FragmentId(i)));
  ATOLL_RETURN_IF_ERROR(parts.shards->DropAllBut(stored));
  for (const StoredEntry& entry : stored) ATOLL_RETURN_IF_ERROR(parts.shards->CheckComplete(entry));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> OpenRocksDbStore(const RocksDbStoreOptions& options) {
  ATOLL_RETURN_IF_ERROR(CheckDirectory(options));
  const DataDir dir{.root = options.data_dir};
  ATOLL_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(dir.lock()));
  ATOLL_RETURN_IF_ERROR(AdmitCheckpoint(dir));
  // After a kill a file in sst/ may still be linked to one that a shard owns; emptied before anything is
  // written to it, and with names never used again, that is harmless.
  ATOLL_RETURN_IF_ERROR(RemoveAll(dir.staging()));
  ATOLL_RETURN_IF_ERROR(CreateDirs(dir.staging()));
  ATOLL_RETURN_IF_ERROR(CreateDirs(dir.meta()));
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<MetaDb> meta, MetaDb::Open(dir.meta()));
  ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
  RocksDbRunStore::Parts parts{.lock = std::move(lock),
                               .dir = dir,
                               .headroom_bytes = options.headroom_bytes,
                               .meta = std::move(meta),
                               .contributions = nullptr,
                               .checkpoints = std::nullopt,
                               .shards = nullptr,
                               .ledger = std::move(loaded.ledger),
                               .recovery = std::move(loaded.recovery)};
  const auto judge = [&parts](const ContributionKey& key) { return FateOf(parts.ledger, key); };
  ATOLL_ASSIGN_OR_RETURN(parts.contributions, ContributionFolder::Open(dir.contributions(), judge));
  ATOLL_ASSIGN_OR_RETURN(parts.checkpoints, CheckpointFolder::Open(dir.checkpoints()));
  if (parts.recovery) {
    ATOLL_ASSIGN_OR_RETURN(parts.recovery->checkpoint, BegunCheckpoint(dir, *parts.recovery));
    ATOLL_RETURN_IF_ERROR(RecoverShards(parts));
    ATOLL_RETURN_IF_ERROR(CheckPayloads(*parts.contributions, *parts.recovery));
    parts.recovery->interrupted_restore = ReadRestoreNote(dir.restore_note(), parts.recovery->identity.epoch);
  }
  return std::make_unique<RocksDbRunStore>(std::move(parts));
}

}  // namespace atoll
