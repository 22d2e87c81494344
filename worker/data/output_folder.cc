#include "worker/data/output_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

bool IsMountPoint(const std::string& folder) {
  struct stat own {};
  struct stat above {};
  return ::stat(folder.c_str(), &own) == 0 && ::stat(JoinPath(folder, "..").c_str(), &above) == 0 &&
         own.st_dev != above.st_dev;
}

absl::Status CheckTarget(const std::string& folder) {
  if (FileExists(JoinPath(folder, "meta.json"))) {
    return absl::AlreadyExistsError(absl::StrCat(
        "folder ", folder, " already holds a dataset (meta.json); remove it or name another folder"));
  }
  const auto names = ListDir(folder);
  if (!names.ok()) return absl::OkStatus();  // it is not there, or making it will say what is wrong
  if (!names->empty() && names->front() != "lost+found") {
    return absl::AlreadyExistsError(
        absl::StrFormat("folder %s holds other files (%s): a dataset gets a folder of its own; name a new or "
                        "empty one with --out, for example %s",
                        folder, names->front(), JoinPath(folder, "tokens")));
  }
  if (!names->empty() || IsMountPoint(folder)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "folder %s is where a disk is mounted, and a dataset appears by a rename; name a folder "
        "in it with --out, for example %s",
        folder, JoinPath(folder, "tokens")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OutputFolder> OutputFolder::Create(const std::string& folder,
                                                  PartialFolder::LeftOver left_over) {
  ATOLL_RETURN_IF_ERROR(CheckTarget(folder));
  OutputFolder output;
  std::string name = folder;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  const std::filesystem::path parent = std::filesystem::absolute(name).lexically_normal().parent_path();
  for (std::filesystem::path at = parent; !at.empty() && !FileExists(at); at = at.parent_path()) {
    output.made_.push_back(at);
  }
  ATOLL_RETURN_IF_ERROR(CreateDirs(parent));
  ATOLL_ASSIGN_OR_RETURN(output.partial_, PartialFolder::Create(folder, left_over));
  // Another call may have ended since.
  ATOLL_RETURN_IF_ERROR(CheckTarget(folder));
  return output;
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : made_(std::exchange(other.made_, {})), partial_(std::move(other.partial_)) {}

OutputFolder::~OutputFolder() {
  partial_.reset();
  // Only as long as they are empty.
  for (const std::string& path : made_) {
    if (::rmdir(path.c_str()) != 0) return;
  }
}

absl::Status OutputFolder::Publish() { return partial_->Publish(); }

}  // namespace atl
