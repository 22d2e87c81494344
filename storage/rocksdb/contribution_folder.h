#ifndef ATOLL_STORAGE_ROCKSDB_CONTRIBUTION_FOLDER_H_
#define ATOLL_STORAGE_ROCKSDB_CONTRIBUTION_FOLDER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "core/contribution.h"

namespace atl {

/// contributions/: one file per payload, partial or accepted (the record in `meta` decides). Tracks the
/// partial ones: which are being uploaded, and which nobody will resume. Thread-safe.
class ContributionFolder {
 public:
  /// `disposition` classifies each file that an earlier process left.
  enum class Disposition { kAccepted, kPartial, kGarbage };
  using Judge = std::function<Disposition(const ContributionKey&)>;

  /// Creates the folder if needed and removes garbage. Keeps foreign files.
  static absl::StatusOr<std::shared_ptr<ContributionFolder>> Open(const std::string& path,
                                                                  const Judge& judge);

  const std::string& path() const { return path_; }
  std::string PathOf(const ContributionKey& key) const;

  /// Aborted while another upload of the key is alive.
  absl::Status Claim(const ContributionKey& key);
  /// Ends a claim on a partial file. Keeps the file for resumption unless its base is too old or `keep` is
  /// false.
  void Release(const ContributionKey& key, bool keep);
  /// Ends a claim and leaves the file alone: it is accepted.
  void ReleaseAccepted(const ContributionKey& key);

  /// Size of a partial file that waits to be resumed; 0: there is none, or it is being uploaded.
  uint64_t IdleBytes(const ContributionKey& key) const;

  /// Maximum distance of a base behind the head at which partial files are kept; initially 0. Takes effect
  /// with the next LeaveBehind.
  void KeepLate(uint32_t versions);
  /// Removes partial files of the fragment on bases further below `head` than that; those being uploaded when
  /// they end.
  void LeaveBehind(FragmentId fragment, Version head);
  /// Removes an accepted file.
  void Remove(const ContributionKey& key);

  /// epoch-fragment-base-sequence-worker, numbers in hexadecimal.
  static std::string FileName(const ContributionKey& key);
  /// nullopt when FileName cannot have made it.
  static std::optional<ContributionKey> ParseFileName(std::string_view name);

 private:
  enum class State { kIdle, kUploading };

  explicit ContributionFolder(std::string path) : path_(std::move(path)) {}
  void Unlink(const ContributionKey& key) const;

  const std::string path_;
  mutable Mutex mutex_;
  std::map<ContributionKey, State> partial_ ABSL_GUARDED_BY(mutex_);
  bool LeftBehind(Version base, Version head) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::map<FragmentId, Version> heads_ ABSL_GUARDED_BY(mutex_);
  uint32_t late_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CONTRIBUTION_FOLDER_H_
