#include "storage/rocksdb/checkpoint_copy.h"

#include <utility>
#include <vector>

#include "common/file.h"
#include "common/status.h"
#include "storage/committed_tokens.h"
#include "storage/meta_keys.h"
#include "storage/rocksdb/checkpoint_files.h"
#include "storage/rocksdb/checkpoint_payloads.h"
#include "storage/rocksdb/load_run.h"

namespace atl {
namespace {

/// The run in this copy of `meta`, after removing what no round has counted. Nobody can use those
/// contributions: a checkpoint is left for a new epoch, which they may not enter.
absl::StatusOr<LoadedRun> LoadWithoutOpenRounds(const std::string& path) {
  std::vector<ContributionKey> open;
  {
    ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                           MetaDb::Open(path, nullptr, DbAccess::kReadOnly));
    ATOLL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRun(*meta));
    open = loaded.store_index.contributions().UncountedKeys();
    if (open.empty()) return loaded;
  }
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<MetaDb> meta,
                         MetaDb::Open(path, nullptr, DbAccess::kReadWrite));
  MetaBatch batch;
  for (const ContributionKey& key : open) batch.Delete(meta_keys::KeyOf(key));
  ATOLL_RETURN_IF_ERROR(meta->Write(batch, Durability::kSynced));
  return LoadRun(*meta);
}

}  // namespace

absl::StatusOr<CheckpointFolder::Filled> CopyRun(const DataDir& dir, MetaDb& meta, ShardSet& shards,
                                                 const CheckpointRequest& request,
                                                 const std::string& folder) {
  const DataDir copy{.root = folder};
  // The records first: what they name is there by then, and stays: the caller sees to it. What comes
  // after them (a round, a contribution) is not named, and does not count when the copy is opened.
  ATOLL_RETURN_IF_ERROR(meta.CopyTo(copy.meta()));
  ATOLL_RETURN_IF_ERROR(shards.CopyTo(copy.shards()));
  ATOLL_ASSIGN_OR_RETURN(const LoadedRun loaded, LoadWithoutOpenRounds(copy.meta()));
  ATOLL_RETURN_IF_ERROR(CreateDirs(copy.contributions()));
  std::vector<CheckpointPayload> payloads = PayloadsOf(loaded.store_index);
  for (const CheckpointPayload& payload : payloads) {
    const absl::Status linked = LinkOrCopy(JoinPath(dir.root, payload.path), JoinPath(folder, payload.path));
    // What is missing is judged with what is damaged, when everything is there.
    if (!linked.ok() && !absl::IsDataLoss(linked) && !absl::IsNotFound(linked)) return linked;
  }
  const RunIdentity& identity = loaded.recovery->identity;
  CheckpointManifest manifest{.name = request.name,
                              .run_id = identity.run_id,
                              .run_name = identity.name,
                              .software_version = request.software_version,
                              .epoch = identity.epoch,
                              .versions = {},
                              .committed_tokens = CommittedTokens(loaded.recovery->rounds),
                              .created_unix_ns = request.created_unix_ns,
                              .automatic = request.automatic,
                              .files = {}};
  for (const FragmentRecovery& fragment : loaded.recovery->fragments)
    manifest.versions.push_back(fragment.head);
  return CheckpointFolder::Filled{.manifest = std::move(manifest), .payloads = std::move(payloads)};
}

}  // namespace atl
