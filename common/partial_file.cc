#include "common/partial_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"

namespace atoll {

PartialFile::PartialFile(std::string path, std::string partial)
    : path_(std::move(path)), partial_(std::move(partial)) {}

PartialFile::~PartialFile() {
  if (!published_) RemoveFile(partial_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path) {
  return Create(path, path + ".partial");
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path,
                                                                 const std::string& partial) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a folder; name a file"));
  }
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(partial, OpenMode::kTruncate));
  ATOLL_RETURN_IF_ERROR(file.Close());
  return std::unique_ptr<PartialFile>(new PartialFile(path, partial));
}

absl::Status PartialFile::Publish() {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(partial_, OpenMode::kOpenExisting));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  ATOLL_RETURN_IF_ERROR(file.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(partial_, path_));
  published_ = true;
  return absl::OkStatus();
}

}  // namespace atoll
