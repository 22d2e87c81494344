#ifndef ATOLL_WORKER_ISLAND_STORE_FOLDER_H_
#define ATOLL_WORKER_ISLAND_STORE_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "common/file_descriptor.h"

namespace atl {

/// A folder that only this user can read, for the file with which the ranks of one life find each other.
/// Removed with this object. (c10d's other store is a port that everybody can reach.)
class StoreFolder {
 public:
  StoreFolder() = default;
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  ~StoreFolder();

  /// Makes it in the folder for temporary files (TMPDIR), and removes the folders there of this user's
  /// supervisors that were killed: those with a name of ours that hold nothing but a store. The error names
  /// the folder.
  absl::Status Make();
  std::string file() const { return path_ + "/store"; }

 private:
  std::string path_;
  // Locked while this process lives. Closed by exec, so that a rank does not hold it.
  FileDescriptor lock_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_STORE_FOLDER_H_
