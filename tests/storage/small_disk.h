#ifndef ATOLL_TESTS_STORAGE_SMALL_DISK_H_
#define ATOLL_TESTS_STORAGE_SMALL_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/durable_file.h"

namespace atl {

/// A tmpfs of a few MiB that this process alone sees (its own mount namespace), with a ballast file that
/// takes up what a test does not leave free.
class SmallDisk {
 public:
  /// PermissionDenied where neither root nor a user namespace may mount. Call it before any thread is
  /// started.
  static absl::StatusOr<std::unique_ptr<SmallDisk>> Mount(const std::string& at, uint64_t bytes);
  ~SmallDisk();

  const std::string& path() const { return path_; }
  /// Leaves this many bytes free (rounded up to a page), or as many as there are without ballast.
  absl::Status LeaveFree(uint64_t bytes);
  absl::Status FreeAll();

 private:
  SmallDisk(std::string path, DurableFile ballast) : path_(std::move(path)), ballast_(std::move(ballast)) {}

  const std::string path_;
  DurableFile ballast_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_SMALL_DISK_H_
