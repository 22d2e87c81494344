#include "simulate/memory_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/file_lock.h"
#include "common/mapped_file.h"
#include "common/status.h"

namespace atl {
namespace {

struct File {
  std::string bytes;
  std::string synced;
};
using Names = std::map<std::string, std::shared_ptr<File>>;  // by path

struct Disk {
  Names names;
  Names synced;  // what a power cut leaves
  std::set<std::string> folders;
};

Disk& TheDisk() {
  static Disk disk;
  return disk;
}

// No descriptor of the kernel. A destructor that closes it is told so, and nothing else happens.
constexpr int kNoDescriptor = 1 << 30;
constexpr uint64_t kFreeBytes = uint64_t{1} << 40;

File* Find(const std::string& path) {
  const auto file = TheDisk().names.find(path);
  return file == TheDisk().names.end() ? nullptr : file->second.get();
}

absl::Status Missing(const char* what, const std::string& path) {
  return ErrnoToStatus(ENOENT, absl::StrCat(what, " ", path));
}

std::string Below(const std::string& folder) { return JoinPath(folder, ""); }

template <typename Entries>
void EraseBelow(Entries& entries, const std::string& folder) {
  const std::string prefix = Below(folder);
  std::erase_if(entries, [&](const auto& entry) { return absl::StartsWith(entry.first, prefix); });
}

/// The entries below `from`, under `to`.
Names Moved(const Names& names, const std::string& from, const std::string& to) {
  const std::string prefix = Below(from);
  Names moved;
  for (auto name = names.lower_bound(prefix); name != names.end() && absl::StartsWith(name->first, prefix);
       ++name) {
    moved.emplace(JoinPath(to, std::string_view(name->first).substr(prefix.size())), name->second);
  }
  return moved;
}

bool IsFolder(const std::string& path) {
  const std::string prefix = Below(path);
  const auto first = TheDisk().names.lower_bound(prefix);
  return TheDisk().folders.contains(path) ||
         (first != TheDisk().names.end() && absl::StartsWith(first->first, prefix));
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

void CopyMemoryFolder(const std::string& from, const std::string& to) {
  Disk& disk = TheDisk();
  std::map<File*, std::shared_ptr<File>> copies;  // a file may have another name after the power cut
  const auto copy = [&](Names entries) {
    for (auto& [path, file] : entries) {
      std::shared_ptr<File>& twin = copies[file.get()];
      if (twin == nullptr) twin = std::make_shared<File>(*file);
      file = twin;
    }
    return entries;
  };
  disk.names.merge(copy(Moved(disk.names, from, to)));
  disk.synced.merge(copy(Moved(disk.synced, from, to)));
  disk.folders.insert(to);
}

void LoseUnsyncedFiles(const std::string& folder, const std::function<bool()>& is_lost) {
  Disk& disk = TheDisk();
  if (is_lost()) {
    EraseBelow(disk.names, folder);
    disk.names.merge(Moved(disk.synced, folder, folder));
  }
  for (const auto& [path, file] : Moved(disk.names, folder, folder)) {
    if (file->bytes != file->synced && is_lost()) file->bytes = file->synced;
  }
}

void ClearMemoryFiles() { TheDisk() = Disk(); }

// common/file.h

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path.push_back('/');
  path.append(name);
  return path;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  const File* const file = Find(path);
  if (file == nullptr) return Missing("open", path);
  if (file->bytes.size() <= max_bytes) return file->bytes;
  return absl::FailedPreconditionError(
      absl::StrCat("read ", path, ": larger than the ", max_bytes, " bytes that are allowed"));
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, unsigned mode) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(temporary, OpenMode::kTruncate));
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(contents.data(), contents.size()))));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  ATOLL_RETURN_IF_ERROR(file.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(temporary, path));
  return FsyncDir(FolderOf(path));
}

absl::Status FsyncDir(const std::string& path) {
  Disk& disk = TheDisk();
  const auto direct = [&](const std::string& name) { return FolderOf(name) == path; };
  const std::string prefix = Below(path);
  for (auto name = disk.synced.lower_bound(prefix);
       name != disk.synced.end() && absl::StartsWith(name->first, prefix);) {
    name =
        direct(name->first) && !disk.names.contains(name->first) ? disk.synced.erase(name) : std::next(name);
  }
  for (auto name = disk.names.lower_bound(prefix);
       name != disk.names.end() && absl::StartsWith(name->first, prefix); ++name) {
    if (direct(name->first)) disk.synced[name->first] = name->second;
  }
  return absl::OkStatus();
}

absl::Status CreateDirs(const std::string& path) {
  TheDisk().folders.insert(path);
  return absl::OkStatus();
}

bool FileExists(const std::string& path) { return Find(path) != nullptr || IsFolder(path); }

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  const File* const file = Find(path);
  if (file == nullptr) return Missing("stat", path);
  return file->bytes.size();
}

absl::StatusOr<std::vector<std::string>> ListDir(const std::string& path) {
  if (!IsFolder(path)) return Missing("open folder", path);
  const std::string prefix = Below(path);
  std::set<std::string> names;
  for (const auto& [name, file] : Moved(TheDisk().names, path, path)) {
    const std::string rest = name.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status RemoveFile(const std::string& path) {
  TheDisk().names.erase(path);
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  Disk& disk = TheDisk();
  for (Names* const names : {&disk.names, &disk.synced}) {
    names->erase(path);
    EraseBelow(*names, path);
  }
  const std::string prefix = Below(path);
  std::erase_if(disk.folders, [&](const std::string& folder) {
    return folder == path || absl::StartsWith(folder, prefix);
  });
  return absl::OkStatus();
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  Disk& disk = TheDisk();
  if (const auto file = disk.names.find(from); file != disk.names.end()) {
    disk.names[to] = file->second;
    disk.names.erase(from);
    return absl::OkStatus();
  }
  if (!IsFolder(from)) return Missing("rename", from);
  // A folder: with what a power cut would leave of it.
  for (Names* const names : {&disk.names, &disk.synced}) {
    Names moved = Moved(*names, from, to);
    EraseBelow(*names, from);
    names->merge(moved);
  }
  disk.folders.erase(from);
  disk.folders.insert(to);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) { return kFreeBytes; }

// common/durable_file.h

absl::StatusOr<DurableFile> DurableFile::Open(const std::string& path, OpenMode mode) {
  std::shared_ptr<File>& file = TheDisk().names[path];
  const bool creates =
      mode == OpenMode::kCreateNew || mode == OpenMode::kCreateOrOpen || mode == OpenMode::kTruncate;
  if (file == nullptr && !creates) {
    TheDisk().names.erase(path);
    return Missing("open", path);
  }
  if (file != nullptr && mode == OpenMode::kCreateNew)
    return ErrnoToStatus(EEXIST, absl::StrCat("open ", path));
  if (file == nullptr) file = std::make_shared<File>();
  if (mode == OpenMode::kTruncate) file->bytes.clear();
  return DurableFile(FileDescriptor(kNoDescriptor), path);
}

absl::Status DurableFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  File* const file = Find(path_);
  if (file == nullptr) return Missing("write to", path_);
  if (file->bytes.size() < offset + bytes.size()) file->bytes.resize(offset + bytes.size());
  if (!bytes.empty()) std::memcpy(file->bytes.data() + offset, bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status DurableFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  const File* const file = Find(path_);
  if (file == nullptr) return Missing("read", path_);
  if (file->bytes.size() < offset + out.size())
    return absl::OutOfRangeError(absl::StrCat("read ", path_, ": too short"));
  if (!out.empty()) std::memcpy(out.data(), file->bytes.data() + offset, out.size());
  return absl::OkStatus();
}

absl::Status DurableFile::Sync() {
  File* const file = Find(path_);
  if (file == nullptr) return Missing("sync", path_);
  file->synced = file->bytes;
  return absl::OkStatus();
}

absl::Status DurableFile::Truncate(uint64_t size) {
  File* const file = Find(path_);
  if (file == nullptr) return Missing("set size of", path_);
  file->bytes.resize(size);
  return absl::OkStatus();
}

absl::Status DurableFile::Reserve(uint64_t bytes) { return absl::OkStatus(); }
absl::StatusOr<uint64_t> DurableFile::Size() const { return FileSize(path_); }

absl::Status DurableFile::Close() {
  fd_.Release();
  return absl::OkStatus();
}

// common/file_lock.h

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  ATOLL_RETURN_IF_ERROR(DurableFile::Open(path, OpenMode::kCreateOrOpen).status());
  return FileLock(FileDescriptor(), path);
}

// common/mapped_file.h: a copy, since the file may be renamed or removed while it is mapped.

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, AccessPattern pattern) {
  const File* const file = Find(path);
  if (file == nullptr) return Missing("open", path);
  const size_t size = file->bytes.size();
  if (size == 0) return MappedFile({}, path);
  auto* const copy = new std::byte[size];
  std::memcpy(copy, file->bytes.data(), size);
  return MappedFile({copy, size}, path);
}

MappedFile::~MappedFile() { delete[] bytes_.data(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace atl
