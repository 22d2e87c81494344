#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/rocksdb/find_run.h"
#include "storage/rocksdb/load_run.h"
#include "storage/rocksdb/meta_db.h"
#include "storage/rocksdb/own_files.h"
#include "storage/rocksdb/restore_note.h"
#include "storage/rocksdb/rocksdb_run_store.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atl {
namespace {

absl::Status NoDataDirectory(const DataDir& dir, const std::string& foreign) {
  const std::string name = foreign.substr(std::min(foreign.size(), JoinPath(dir.root, "").size()));
  const DataDir nested{.root = JoinPath(dir.root, name.substr(0, name.find('/')))};
  std::string remedy = "give a folder that is empty or does not exist";
  if (FileExists(JoinPath(nested.meta(), "CURRENT"))) {
    remedy = absl::StrFormat("%s is a run or a checkpoint: 'cp -r' copies into a folder that exists; give %s",
                             nested.root, nested.root);
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is not a data directory and not empty: it holds '%s'; %s", dir.root, name, remedy));
}

/// A slip on the command line must not mix a run with other files, nor remove them: without the records of a
/// run, the folder may hold only what a first start leaves when it is killed.
absl::Status CheckNothingForeign(const DataDir& dir) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> foreign, FindForeign(dir));
  return foreign ? NoDataDirectory(dir, *foreign) : absl::OkStatus();
}

/// After FindRun found no run. A checkpoint comes after the records, so that even a folder which looks like
/// an unfinished one is somebody else's.
absl::Status CheckBeginning(const DataDir& dir) {
  ATOLL_RETURN_IF_ERROR(CheckNothingForeign(dir));
  const auto checkpoints = ListDir(dir.checkpoints());
  if (absl::IsNotFound(checkpoints.status())) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(checkpoints.status());
  if (checkpoints->empty()) return absl::OkStatus();
  return NoDataDirectory(dir, JoinPath(dir.checkpoints(), checkpoints->front()));
}

absl::Status CheckDirectory(const RocksDbStoreOptions& options) {
  const DataDir dir{.root = options.data_dir};
  if (options.create_if_missing) {
    ATOLL_RETURN_IF_ERROR(CreateDirs(dir.root));
  } else if (!FileExists(dir.meta())) {
    // No run can begin in a folder of others either; the error may know where the run is.
    if (ListDir(dir.root).ok()) ATOLL_RETURN_IF_ERROR(CheckNothingForeign(dir));
    return absl::NotFoundError(absl::StrFormat("%s holds no run", dir.root));
  }
  if (FileExists(JoinPath(dir.meta(), "CURRENT"))) return absl::OkStatus();  // FindRun tells whose it is
  // Before the lock, which leaves a file.
  ATOLL_RETURN_IF_ERROR(CheckNothingForeign(dir));
  ATOLL_RETURN_IF_ERROR(FindRun(dir).status());
  return CheckBeginning(dir);
}

/// What became of an import that a process had noted. A note of a run that is seeded, or was not recorded
/// yet, has nothing more to say.
absl::Status SettleImport(const DataDir& dir, std::optional<Recovery>& recovery) {
  const auto source = ReadFile(dir.import_note());
  if (absl::IsNotFound(source.status())) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(source.status());
  if (!recovery || recovery->manifest) return RemoveFile(dir.import_note());
  recovery->interrupted_import = *source;
  return absl::OkStatus();
}

ContributionFolder::Disposition DispositionOf(const StoreIndex& store_index, const ContributionKey& key) {
  using Disposition = ContributionFolder::Disposition;
  if (store_index.contributions().Find(key) != nullptr) return Disposition::kAccepted;
  const bool resumable = store_index.identity() && key.epoch == store_index.identity()->epoch &&
                         key.fragment.value() < store_index.fragment_count();
  return resumable ? Disposition::kPartial : Disposition::kGarbage;
}

/// Opens the shards of a run and removes what no record names: versions above the newest stored one, half a
/// seed, versions whose removal was cut short.
absl::Status RecoverShards(RocksDbRunStore::Parts& parts) {
  ATOLL_ASSIGN_OR_RETURN(parts.shards, OpenShards(parts.dir, *parts.store_index.identity()));
  std::vector<StoredEntry> stored;
  for (uint32_t i = 0; i < parts.store_index.fragment_count(); ++i)
    stored.push_back(parts.store_index.stored(FragmentId(i)));
  ATOLL_RETURN_IF_ERROR(parts.shards->DropAllBut(stored));
  return RemoveFile(parts.dir.epoch_begun());
}

absl::Status RemoveStagedFiles(const DataDir& dir) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(dir.staging()));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(dir.staging()));
  for (const std::string& name : names) {
    if (IsStagedFile(name)) ATOLL_RETURN_IF_ERROR(RemoveFile(JoinPath(dir.staging(), name)));
  }
  return absl::OkStatus();
}

absl::Status RemoveUnfinishedNotes(const DataDir& dir) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(dir.root));
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir.root, name);
    std::error_code error;
    const bool file = std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error));
    if (file && IsUnfinishedNote(name)) ATOLL_RETURN_IF_ERROR(RemoveFile(path));
  }
  return absl::OkStatus();
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
  ATOLL_RETURN_IF_ERROR(RemoveUnfinishedNotes(dir));
  // After a kill a file in sst/ may still be linked to one that a shard owns; emptied before anything is
  // written to it, and with names never used again, that is harmless.
  return RemoveStagedFiles(dir);
}

}  // namespace

absl::StatusOr<std::string> RecordedConfig(const std::string& data_dir) {
  const DataDir dir{.root = data_dir};
  ATOLL_RETURN_IF_ERROR(CheckNotInsideARun(dir));
  if (!FileExists(dir.root)) return std::string();
  if (!FileExists(JoinPath(dir.meta(), "CURRENT"))) {
    ATOLL_RETURN_IF_ERROR(CheckNothingForeign(dir));
    ATOLL_RETURN_IF_ERROR(FindRun(dir).status());
    ATOLL_RETURN_IF_ERROR(CheckBeginning(dir));
    return std::string();
  }
  ATOLL_ASSIGN_OR_RETURN(const auto meta, MetaDb::Open(dir.meta(), nullptr, DbAccess::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(const LoadedRun run, LoadRun(*meta));
  if (!run.recovery || run.recovery->configs.empty()) return std::string();
  return run.recovery->configs.back().bytes;
}

absl::StatusOr<std::unique_ptr<RunStore>> OpenRocksDbStore(const RocksDbStoreOptions& options) {
  const DataDir dir{.root = options.data_dir};
  ATOLL_RETURN_IF_ERROR(CheckNotInsideARun(dir));
  ATOLL_RETURN_IF_ERROR(CheckDirectory(options));
  ATOLL_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(dir.lock()));
  ATOLL_ASSIGN_OR_RETURN(FoundRun found, FindRun(dir));
  if (!found.run.recovery) ATOLL_RETURN_IF_ERROR(CheckBeginning(dir));
  ATOLL_RETURN_IF_ERROR(RemoveLeftovers(dir, found));
  ATOLL_RETURN_IF_ERROR(SettleImport(dir, found.run.recovery));
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
                               .store_index = std::move(found.run.store_index),
                               .recovery = std::move(found.run.recovery)};
  const auto judge = [&parts](const ContributionKey& key) { return DispositionOf(parts.store_index, key); };
  ATOLL_ASSIGN_OR_RETURN(parts.contributions, ContributionFolder::Open(dir.contributions(), judge));
  ATOLL_ASSIGN_OR_RETURN(parts.checkpoints, CheckpointFolder::Open(dir.checkpoints()));
  if (parts.recovery) {
    ATOLL_RETURN_IF_ERROR(RecoverShards(parts));
    parts.recovery->interrupted_restore = ReadRestoreNote(dir.restore_note(), parts.recovery->identity.epoch);
  }
  return std::make_unique<RocksDbRunStore>(std::move(parts));
}

}  // namespace atl
