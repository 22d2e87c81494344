#include "storage/rocksdb/find_run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/checkpoint_manifest.h"
#include "storage/describe.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/checkpoint_folder.h"
#include "storage/rocksdb/checkpoint_payloads.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/rocksdb/load_run.h"
#include "storage/rocksdb/log_check.h"
#include "storage/rocksdb/meta_db.h"

namespace atl {
namespace {

/// Empty when the folder is not there.
std::vector<std::string> NamesIn(const std::string& folder) {
  auto names = ListDir(folder);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

absl::Status RecordsLost(const std::string& evidence, const DataDir& dir) {
  return absl::DataLossError(absl::StrFormat("%s, but the records in %s do not contain it: records were lost",
                                             evidence, dir.meta()));
}

struct Payloads {
  std::vector<ContributionKey> keys;
  explicit Payloads(const DataDir& dir) {
    for (const std::string& name : NamesIn(dir.contributions())) {
      if (const auto key = ContributionFolder::ParseFileName(name)) keys.push_back(*key);
    }
  }
};

std::string PathOf(const DataDir& dir, const ContributionKey& key) {
  return JoinPath(dir.contributions(), ContributionFolder::FileName(key));
}

/// A table file in a shard: a run was seeded, or was just being seeded.
std::optional<std::string> AnyTensors(const DataDir& dir) {
  for (const std::string& shard : NamesIn(dir.shards())) {
    const std::string folder = JoinPath(dir.shards(), shard);
    for (const std::string& name : NamesIn(folder)) {
      if (name.ends_with(".sst")) return JoinPath(folder, name);
    }
  }
  return std::nullopt;
}

/// What only a run that was created and seeded has.
std::optional<std::string> TraceOfASeededRun(const DataDir& dir) {
  if (auto tensors = AnyTensors(dir)) return tensors;
  for (const std::string& manifest : {dir.checkpoint_manifest(), dir.checkpoint_begun()}) {
    if (FileExists(manifest)) return manifest;
  }
  const Payloads payloads(dir);
  if (!payloads.keys.empty()) return PathOf(dir, payloads.keys.front());
  for (const std::string& name : NamesIn(dir.checkpoints())) {
    const std::string folder = JoinPath(dir.checkpoints(), name);
    if (FileExists(JoinPath(folder, kCheckpointManifestFile))) return folder;
  }
  return std::nullopt;
}

/// What is made only when `meta` is complete.
std::optional<std::string> TraceOfARun(const DataDir& dir) {
  for (const std::string& name : NamesIn(dir.meta())) {
    std::string path = JoinPath(dir.meta(), name);
    if (name.ends_with(".sst") || (name.ends_with(".log") && FileSize(path).value_or(0) > 0)) return path;
  }
  const std::vector<std::string> shards = NamesIn(dir.shards());
  if (!shards.empty()) return JoinPath(dir.shards(), shards.front());
  return TraceOfASeededRun(dir);
}

std::optional<uint64_t> NumberOf(const std::string& name, const std::string& ending) {
  uint64_t number = 0;
  if (!name.ends_with(ending)) return std::nullopt;
  if (!absl::SimpleAtoi(name.substr(0, name.size() - ending.size()), &number)) return std::nullopt;
  return number;
}

/// A log is made with every opening, before the one before it is removed. A checkpoint may have none.
absl::Status CheckLogIsThere(const DataDir& dir, FoundRun::Checkpoint checkpoint) {
  const std::vector<std::string> names = NamesIn(dir.meta());
  const bool has_log = std::ranges::any_of(names, [](const auto& name) { return name.ends_with(".log"); });
  if (has_log || checkpoint != FoundRun::Checkpoint::kNone) return absl::OkStatus();
  const auto trace = TraceOfARun(dir);
  if (!trace) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("%s has no write-ahead log (*.log), although there is %s", dir.meta(), *trace));
}

/// RocksDB removes table files that its manifest does not name. What a crash leaves of them is newer than the
/// oldest log, or was replaced by a newer one.
absl::Status CheckTablesAreKnown(const DataDir& dir, const std::vector<std::string>& known) {
  const std::vector<std::string> names = NamesIn(dir.meta());
  uint64_t oldest_log = std::numeric_limits<uint64_t>::max(), newest_known = 0;
  for (const std::string& name : names)
    oldest_log = std::min(oldest_log, NumberOf(name, ".log").value_or(oldest_log));
  for (const std::string& name : known)
    newest_known = std::max(newest_known, NumberOf(name, ".sst").value_or(0));
  for (const std::string& name : names) {
    const auto number = NumberOf(name, ".sst");
    if (!number || *number <= newest_known || *number > oldest_log) continue;
    return absl::DataLossError(absl::StrFormat(
        "%s is not named by the database's manifest, which has lost its end", JoinPath(dir.meta(), name)));
  }
  return absl::OkStatus();
}

/// Every shard's folder is there, and no other.
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

/// Tensors are stored when the record of their version is. Only a new epoch, and a seed, write them before
/// it.
absl::Status CheckTensors(const DataDir& dir, const StoreIndex& store_index,
                          FoundRun::Checkpoint checkpoint) {
  const bool new_epoch = checkpoint != FoundRun::Checkpoint::kNone || FileExists(dir.epoch_begun()) ||
                         FileExists(dir.restore_note());
  ATOLL_ASSIGN_OR_RETURN(const auto shards, OpenShards(dir, *store_index.identity(), DbAccess::kReadOnly));
  for (const ShardSet::Found& found : shards->Versions()) {
    if (store_index.seeded() && found.fragment.value() >= store_index.fragment_count())
      continue;  // of half a seed
    Version newest = store_index.seeded() ? store_index.head(found.fragment) : Version(0);
    if (store_index.seeded() && new_epoch) newest = Next(newest);
    if (found.version <= newest) continue;
    return RecordsLost(
        absl::StrFormat("%s holds %s", JoinPath(dir.shards(), ShardSet::FolderName(found.shard)),
                        Describe(found.fragment, found.version)),
        dir);
  }
  for (uint32_t i = 0; i < store_index.fragment_count(); ++i) {
    ATOLL_RETURN_IF_ERROR(shards->CheckComplete(store_index.stored(FragmentId(i))));
  }
  return absl::OkStatus();
}

/// Nobody can upload to a base that was not published, nor before the run was seeded. A whole payload without
/// a record on another base may be one that was never acknowledged.
absl::Status CheckNoLostPayload(const DataDir& dir, const StoreIndex& store_index) {
  for (const ContributionKey& key : Payloads(dir).keys) {
    if (key.epoch != store_index.identity()->epoch) continue;
    if (store_index.seeded() && key.fragment.value() >= store_index.fragment_count()) continue;
    if (store_index.seeded() && key.base <= store_index.head(key.fragment)) continue;
    return RecordsLost(
        absl::StrFormat("%s is a contribution to %s", PathOf(dir, key), Describe(key.fragment, key.base)),
        dir);
  }
  return absl::OkStatus();
}

absl::Status CheckPayloadSize(const DataDir& dir, const Contribution& contribution) {
  const std::string path = PathOf(dir, contribution.key);
  const auto size = FileSize(path);
  if (size.ok() && *size == contribution.payload_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s was accepted with %d bytes, but its payload %s %s", Describe(contribution.key),
      contribution.payload_bytes, path, size.ok() ? absl::StrFormat("has %d", *size) : "cannot be read"));
}

/// What replaying needs and what the open round has accepted must be there. Replaying compares the bits that
/// it makes; the open round has nothing to compare with but the checksums. Of a checkpoint the open round is
/// not needed: its contributions cannot enter the epoch that is about to begin.
absl::Status CheckPayloads(const DataDir& dir, const Recovery& recovery) {
  for (const FragmentRecovery& fragment : recovery.fragments) {
    for (const RoundRecord& round : fragment.to_replay) {
      for (const Contribution& c : round.contributions) ATOLL_RETURN_IF_ERROR(CheckPayloadSize(dir, c));
    }
    if (recovery.checkpoint) continue;
    std::vector<CheckpointFile> files;
    for (const Contribution& c : fragment.accepted) {
      ATOLL_RETURN_IF_ERROR(CheckPayloadSize(dir, c));
      files.push_back({.path = ContributionFolder::FileName(c.key),
                       .bytes = c.payload_bytes,
                       .crc32c = c.payload_crc32c});
    }
    ATOLL_RETURN_IF_ERROR(CheckFiles(dir.contributions(), files, FileCheck::kContents));
  }
  return absl::OkStatus();
}

/// A checkpoint that is used as a data directory is checked file by file, once: from then on it is written
/// to, and a note takes the place of its manifest until the new epoch has begun.
absl::StatusOr<std::optional<CheckpointManifest>> NewCheckpoint(const DataDir& dir) {
  auto manifest = ReadCheckpointManifest(dir.checkpoint_manifest());
  if (absl::IsNotFound(manifest.status())) return std::nullopt;
  if (!manifest.ok()) return manifest.status();
  const absl::Status whole = CheckCheckpoint(dir.root, *manifest, FileCheck::kContents);
  if (whole.ok()) return *std::move(manifest);
  return absl::DataLossError(absl::StrFormat("checkpoint '%s' in %s cannot be used: %s", manifest->name,
                                             dir.root, std::string(whole.message())));
}

/// The manifest of the checkpoint that this directory is or was.
absl::StatusOr<std::optional<CheckpointManifest>> FindCheckpoint(const DataDir& dir, FoundRun& found) {
  ATOLL_ASSIGN_OR_RETURN(std::optional<CheckpointManifest> manifest, NewCheckpoint(dir));
  if (manifest) {
    found.checkpoint = FoundRun::Checkpoint::kNew;
    return manifest;
  }
  auto begun = ReadCheckpointManifest(dir.checkpoint_begun());
  if (absl::IsNotFound(begun.status())) return std::nullopt;
  if (!begun.ok()) return begun.status();
  found.checkpoint = FoundRun::Checkpoint::kBegun;
  return *std::move(begun);
}

absl::Status LoadRecords(const DataDir& dir, FoundRun& found) {
  ATOLL_ASSIGN_OR_RETURN(std::optional<CheckpointManifest> checkpoint, FindCheckpoint(dir, found));
  ATOLL_RETURN_IF_ERROR(CheckLogIsThere(dir, found.checkpoint));
  ATOLL_RETURN_IF_ERROR(CheckMetaLogs(dir.meta()));
  ATOLL_ASSIGN_OR_RETURN(const auto meta, MetaDb::Open(dir.meta(), nullptr, DbAccess::kReadOnly));
  ATOLL_RETURN_IF_ERROR(CheckTablesAreKnown(dir, meta->TableFiles()));
  ATOLL_ASSIGN_OR_RETURN(found.run, LoadRun(*meta));
  if (!checkpoint || !found.run.recovery) return absl::OkStatus();
  if (checkpoint->epoch == found.run.recovery->identity.epoch) {
    found.run.recovery->checkpoint = std::move(checkpoint);
  } else if (found.checkpoint == FoundRun::Checkpoint::kBegun) {
    found.checkpoint = FoundRun::Checkpoint::kLeft;
  }
  return absl::OkStatus();
}

/// What a run writes to and removes from.
constexpr std::string_view kFoldersOfARun[] = {"meta",   "shards",      "sst",    "contributions",
                                               "access", "checkpoints", "workers"};

/// `each` is the folder of the run in which `dir` lies; `inner` its child on the way there, or empty.
absl::Status InsideARun(const DataDir& dir, const DataDir& run, const std::filesystem::path& each,
                        const std::filesystem::path& inner) {
  if (each.filename() != "checkpoints" || inner.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is inside the data directory of another run, %s, which writes to '%s'; give a folder outside it",
        dir.root, run.root, each.filename().string()));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is inside the data directory of another run, %s, which removes or checks its checkpoints. Copy the "
      "folder and start from the copy, or run `atollctl checkpoint restore %s` on that run",
      dir.root, run.root, inner.filename().string()));
}

absl::StatusOr<FoundRun> Find(const DataDir& dir) {
  FoundRun found;
  const std::string current = JoinPath(dir.meta(), "CURRENT");
  if (!FileExists(current)) {
    const auto trace = TraceOfARun(dir);
    if (trace)
      return absl::DataLossError(absl::StrFormat("%s is missing, although there is %s", current, *trace));
    found.is_new = true;
    return found;
  }
  ATOLL_RETURN_IF_ERROR(LoadRecords(dir, found));
  if (!found.run.recovery) {
    const auto trace = TraceOfASeededRun(dir);
    if (trace) return RecordsLost(absl::StrFormat("there is %s", *trace), dir);
    return found;
  }
  ATOLL_RETURN_IF_ERROR(CheckShardFolders(dir, found.run.recovery->identity));
  ATOLL_RETURN_IF_ERROR(CheckNoLostPayload(dir, found.run.store_index));
  ATOLL_RETURN_IF_ERROR(CheckTensors(dir, found.run.store_index, found.checkpoint));
  ATOLL_RETURN_IF_ERROR(CheckPayloads(dir, *found.run.recovery));
  return found;
}

}  // namespace

absl::StatusOr<FoundRun> FindRun(const DataDir& dir) {
  absl::StatusOr<FoundRun> found = Find(dir);
  if (!absl::IsDataLoss(found.status())) return found;
  return absl::DataLossError(
      absl::StrFormat("%s. Nothing was changed. Do not repair the directory: start from a copy of a "
                      "checkpoint, or from a backup",
                      std::string(found.status().message())));
}

absl::Status CheckNotInsideARun(const DataDir& dir) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(dir.root, error);
  if (!error) path = std::filesystem::weakly_canonical(path, error);
  if (error) return absl::OkStatus();  // opening it says why
  std::filesystem::path inner;         // what `each` leads to on the way to `path`
  for (std::filesystem::path each = path; each.has_relative_path(); each = each.parent_path()) {
    const DataDir run{.root = each.parent_path().string()};
    const bool used = std::ranges::find(kFoldersOfARun, each.filename().string()) != std::end(kFoldersOfARun);
    if (used && FileExists(JoinPath(run.meta(), "CURRENT"))) return InsideARun(dir, run, each, inner);
    inner = each;
  }
  return absl::OkStatus();
}

}  // namespace atl
