#include "worker/data/input/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kFillBytes = size_t{1} << 18;

FileStamp StampOf(const struct stat& status) {
  return {.bytes = static_cast<int64_t>(status.st_size),
          .modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

}  // namespace

absl::StatusOr<TextSource> TextSource::Open(const std::string& path, int max_window_log) {
  FileDescriptor fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("opening text file ", path));
  struct stat status {};
  const bool known = ::fstat(fd.get(), &status) == 0;
  if (known && S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("text file ", path, ": is a folder; name the files in it"));
  }
  if (path != "-" && known && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("text file ", path,
                                                      ": is a device, which may never end; "
                                                      "name a file or a pipe"));
  }
  const bool regular = known && S_ISREG(status.st_mode);
  return TextSource(std::move(fd), path, regular ? std::optional(StampOf(status)) : std::nullopt,
                    max_window_log);
}

absl::Status TextSource::Fill() {
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t before = buffer_.size();
  buffer_.resize(before + kFillBytes);
  ssize_t got = 0;
  do {
    got = ::read(fd_.get(), buffer_.data() + before, kFillBytes);
  } while (got < 0 && errno == EINTR);
  const int problem = errno;
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return ErrnoToStatus(problem, absl::StrCat("reading text file ", path_));
  file_bytes_ += static_cast<uint64_t>(got);
  ended_ = got == 0;
  return ended_ ? CheckUnchanged() : absl::OkStatus();
}

absl::Status TextSource::CheckUnchanged() const {
  struct stat status {};
  if (!stamp_ || ::fstat(fd_.get(), &status) != 0 || StampOf(status) == *stamp_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "text file ", path_,
      ": another program changed it while it was read; wait until the file is complete, or copy it"));
}

absl::Status TextSource::Detect() {
  while (!ended_ && waiting().size() < kMagicBytes) ATOLL_RETURN_IF_ERROR(Fill());
  ATOLL_ASSIGN_OR_RETURN(decompressor_, MakeDecompressor(waiting().substr(0, kMagicBytes), max_window_log_));
  detected_ = true;
  return absl::OkStatus();
}

absl::Status TextSource::Damaged(const absl::Status& status) const {
  return {status.code(),
          absl::StrCat("text file ", path_, ": ", std::string(status.message()), "; copy the file again")};
}

absl::Status TextSource::Read(size_t max_bytes, std::string& text) {
  if (!detected_) ATOLL_RETURN_IF_ERROR(Detect());
  const size_t before = text.size();
  while (text.size() == before) {
    if (waiting().empty() && !ended_) ATOLL_RETURN_IF_ERROR(Fill());
    std::string_view rest = waiting();
    if (decompressor_ == nullptr) {
      text.append(rest.substr(0, max_bytes));
      used_ += std::min(max_bytes, rest.size());
      return absl::OkStatus();
    }
    // At the end of the file the decompressor may still hold text.
    const bool last = rest.empty();
    const absl::Status status = decompressor_->Decompress(rest, max_bytes, text);
    used_ = buffer_.size() - rest.size();
    if (!status.ok()) return Damaged(status);
    if (last && text.size() == before) {
      const absl::Status complete = decompressor_->Finish();
      return complete.ok() ? complete : Damaged(complete);
    }
  }
  return absl::OkStatus();
}

}  // namespace atl
