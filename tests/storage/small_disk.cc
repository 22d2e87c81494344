#include "tests/storage/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<SmallDisk>> SmallDisk::Mount(const std::string& at, uint64_t bytes) {
  const int flags = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  if (::unshare(flags) != 0) return ErrnoToStatus(errno, "unshare");
  // Nothing mounted here may reach the machine's other mount namespaces.
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return ErrnoToStatus(errno, "mount /");
  const std::string options = absl::StrCat("size=", bytes);
  if (::mount("tmpfs", at.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("mount tmpfs on ", at));
  }
  ATOLL_ASSIGN_OR_RETURN(DurableFile ballast, DurableFile::Open(at + "/ballast", OpenMode::kCreateNew));
  return std::unique_ptr<SmallDisk>(new SmallDisk(at, std::move(ballast)));
}

SmallDisk::~SmallDisk() {
  ballast_ = DurableFile();
  ::umount2(path_.c_str(), MNT_DETACH);
}

absl::Status SmallDisk::LeaveFree(uint64_t bytes) {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t ballast, ballast_.Size());
  ATOLL_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytes(path_));
  const uint64_t wanted = (bytes + kPage - 1) / kPage * kPage;
  const uint64_t size = ballast + free_bytes - std::min(wanted, ballast + free_bytes);
  ATOLL_RETURN_IF_ERROR(ballast_.Truncate(size));
  return ballast_.Reserve(size);
}

absl::Status SmallDisk::FreeAll() { return ballast_.Truncate(0); }

}  // namespace atl
