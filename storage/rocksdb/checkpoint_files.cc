#include "storage/rocksdb/checkpoint_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

absl::Status CopyFile(const std::string& from, const std::string& to) {
  ATOLL_ASSIGN_OR_RETURN(const DurableFile source, DurableFile::Open(from, OpenMode::kReadOnly));
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, source.Size());
  ATOLL_ASSIGN_OR_RETURN(DurableFile target, DurableFile::Open(to, OpenMode::kCreateNew));
  ATOLL_RETURN_IF_ERROR(target.Reserve(size));
  std::vector<std::byte> buffer(kReadBytes);
  for (uint64_t done = 0; done < size;) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min<uint64_t>(kReadBytes, size - done));
    ATOLL_RETURN_IF_ERROR(source.ReadAt(done, piece));
    ATOLL_RETURN_IF_ERROR(target.WriteAt(done, piece));
    done += piece.size();
  }
  return target.Sync();
}

absl::StatusOr<uint32_t> ChecksumOf(const DurableFile& file, uint64_t size) {
  std::vector<std::byte> buffer(kReadBytes);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < size;) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min<uint64_t>(kReadBytes, size - done));
    ATOLL_RETURN_IF_ERROR(file.ReadAt(done, piece));
    crc = Crc32c(piece, crc);
    done += piece.size();
  }
  return crc;
}

absl::Status Damaged(const std::string& path, const std::string& how) {
  return absl::DataLossError(absl::StrFormat("%s %s", path, how));
}

absl::Status CheckFile(const std::string& path, const CheckpointFile& expected, FileCheck check) {
  const auto size = FileSize(path);
  if (absl::IsNotFound(size.status())) return Damaged(path, "is missing");
  if (!size.ok()) return size.status();
  if (*size != expected.bytes) {
    return Damaged(path, absl::StrFormat("has %d bytes instead of %d", *size, expected.bytes));
  }
  if (check == FileCheck::kSizes) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(const DurableFile file, DurableFile::Open(path, OpenMode::kReadOnly));
  const auto crc = ChecksumOf(file, expected.bytes);
  if (!crc.ok())
    return Damaged(path, absl::StrFormat("cannot be read: %s", std::string(crc.status().message())));
  if (*crc == expected.crc32c) return absl::OkStatus();
  return Damaged(path,
                 absl::StrFormat("is damaged: its crc32c is %08x instead of %08x", *crc, expected.crc32c));
}

absl::StatusOr<CheckpointFile> SealFile(const std::string& folder, const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kReadOnly));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  CheckpointFile sealed{.path = path.substr(folder.size() + 1)};
  ATOLL_ASSIGN_OR_RETURN(sealed.bytes, file.Size());
  ATOLL_ASSIGN_OR_RETURN(sealed.crc32c, ChecksumOf(file, sealed.bytes));
  return sealed;
}

}  // namespace

absl::Status LinkOrCopy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  const bool cannot =
      error == EPERM || error == EXDEV || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
  if (cannot) return CopyFile(from, to);
  return absl::Status(error == ENOENT ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
                      absl::StrFormat("link %s to %s: %s", from, to, std::strerror(error)));
}

absl::StatusOr<std::vector<CheckpointFile>> SealFiles(const std::string& folder) {
  std::vector<CheckpointFile> files;
  std::vector<std::string> folders = {folder};
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    if (it->is_directory()) {
      folders.push_back(path);
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(CheckpointFile sealed, SealFile(folder, path));
    files.push_back(std::move(sealed));
  }
  if (error) return absl::UnavailableError(absl::StrFormat("list %s: %s", folder, error.message()));
  for (const std::string& each : folders) ATOLL_RETURN_IF_ERROR(FsyncDir(each));
  std::ranges::sort(files, {}, &CheckpointFile::path);
  return files;
}

absl::Status CheckFiles(const std::string& folder, const std::vector<CheckpointFile>& files,
                        FileCheck check) {
  for (const CheckpointFile& file : files) {
    ATOLL_RETURN_IF_ERROR(CheckFile(JoinPath(folder, file.path), file, check));
  }
  return absl::OkStatus();
}

uint64_t SharedBytes(const std::string& folder, const std::vector<CheckpointFile>& files) {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : files) {
    struct stat info;
    if (::stat(JoinPath(folder, file.path).c_str(), &info) == 0 && info.st_nlink > 1) bytes += file.bytes;
  }
  return bytes;
}

}  // namespace atl
