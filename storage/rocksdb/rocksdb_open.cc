#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/rocksdb/find_run.h"
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
  ATOLL_ASSIGN_OR_RETURN(parts.shards, OpenShards(parts.dir, *parts.ledger.identity()));
  std::vector<StoredEntry> stored;
  for (uint32_t i = 0; i < parts.ledger.fragment_count(); ++i)
    stored.push_back(parts.ledger.stored(FragmentId(i)));
  ATOLL_RETURN_IF_ERROR(parts.shards->DropAllBut(stored));
  return RemoveFile(parts.dir.epoch_begun());
}

/// From here on the directory is written to.
absl::Status RemoveLeftovers(const DataDir& dir, const FoundRun& found) {
  if (found.checkpoint == FoundRun::Checkpoint::kNew) {
    ATOLL_RETURN_IF_ERROR(RenameFile(dir.checkpoint_manifest(), dir.checkpoint_begun()));
    ATOLL_RETURN_IF_ERROR(FsyncDir(dir.root));
  }
  // The new epoch is there; a crash left only the note.
  if (found.checkpoint == FoundRun::Checkpoint::kLeft) {
    ATOLL_RETURN_IF_ERROR(RemoveFile(dir.checkpoint_begun()));
  }
  // After a kill a file in sst/ may still be linked to one that a shard owns; emptied before anything is
  // written to it, and with names never used again, that is harmless.
  ATOLL_RETURN_IF_ERROR(RemoveAll(dir.staging()));
  return CreateDirs(dir.staging());
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> OpenRocksDbStore(const RocksDbStoreOptions& options) {
  const DataDir dir{.root = options.data_dir};
  ATOLL_RETURN_IF_ERROR(CheckNotInsideARun(dir));
  ATOLL_RETURN_IF_ERROR(CheckDirectory(options));
  ATOLL_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(dir.lock()));
  ATOLL_ASSIGN_OR_RETURN(FoundRun found, FindRun(dir));
  ATOLL_RETURN_IF_ERROR(RemoveLeftovers(dir, found));
  ATOLL_RETURN_IF_ERROR(CreateDirs(dir.meta()));
  const DbAccess access = found.is_new ? DbAccess::kCreate : DbAccess::kReadWrite;
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<MetaDb> meta, MetaDb::Open(dir.meta(), nullptr, access));
  RocksDbRunStore::Parts parts{.lock = std::move(lock),
                               .dir = dir,
                               .headroom_bytes = options.headroom_bytes,
                               .meta = std::move(meta),
                               .contributions = nullptr,
                               .checkpoints = std::nullopt,
                               .shards = nullptr,
                               .ledger = std::move(found.run.ledger),
                               .recovery = std::move(found.run.recovery)};
  const auto judge = [&parts](const ContributionKey& key) { return FateOf(parts.ledger, key); };
  ATOLL_ASSIGN_OR_RETURN(parts.contributions, ContributionFolder::Open(dir.contributions(), judge));
  ATOLL_ASSIGN_OR_RETURN(parts.checkpoints, CheckpointFolder::Open(dir.checkpoints()));
  if (parts.recovery) {
    ATOLL_RETURN_IF_ERROR(RecoverShards(parts));
    parts.recovery->interrupted_restore = ReadRestoreNote(dir.restore_note(), parts.recovery->identity.epoch);
  }
  return std::make_unique<RocksDbRunStore>(std::move(parts));
}

}  // namespace atoll
