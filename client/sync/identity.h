#ifndef ATOLL_CLIENT_SYNC_IDENTITY_H_
#define ATOLL_CLIENT_SYNC_IDENTITY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/file_lock.h"
#include "common/ids.h"
#include "common/signature.h"

namespace atl {

/// Who a worker is: the name it joins under, and the secret that proves on its return that it is the one that
/// had it.
struct WorkerIdentity {
  WorkerName name;
  std::string secret;  // 32 random bytes
};

/// A worker's state directory, held by one process at a time.
///
///   LOCK       flock
///   identity   JSON, mode 0600: {"name": "...", "secret": "<64 hex digits>"}; with "joined": false until the
///              first accepted Join
///   key        the Ed25519 key of its confirmations: 64 hex digits and a newline, mode 0600
///   progress   what WorkerCheckpoint keeps
class StateDirectory {
 public:
  /// Creates the directory when it is not there. FailedPrecondition when another process holds it.
  static absl::StatusOr<StateDirectory> Open(const std::string& path);

  /// The identity kept here; made (atomically, with `wanted_name`, or DefaultWorkerName when that is empty)
  /// when there is none, or when one of another name was never claimed. FailedPrecondition when another name
  /// than `wanted_name` is claimed: a name is not changed silently. DataLoss when the file is damaged.
  absl::StatusOr<WorkerIdentity> LoadOrCreate(std::string_view wanted_name) const;

  /// Binds the directory to the name of its identity, once a coordinator has accepted it. Until then a wrong
  /// name, which a coordinator rejects, does not occupy the directory. The secret is stored before the Join,
  /// so a worker that is killed in between is still known to the coordinator.
  absl::Status Claim() const;

  /// The key kept here; made when there is none. DataLoss when the file is damaged.
  absl::StatusOr<SigningKey> LoadOrCreateKey() const;

  const std::string& path() const { return path_; }

 private:
  StateDirectory(std::string path, FileLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string IdentityFile() const;

  std::string path_;
  FileLock lock_;
};

/// The host's name made valid for a worker, with four random characters, so that several workers of one host
/// differ.
WorkerName DefaultWorkerName();

/// `text` in lower case with every character that a worker's name may not have replaced by '-'; "worker" when
/// nothing of it is left. At most `max_bytes` long.
WorkerName MakeWorkerName(std::string_view text, size_t max_bytes);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_IDENTITY_H_
