#include "client/setup/ready_file.h"

#include <fcntl.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/left_over.h"

namespace atl {

absl::Status ReadyFile::Check(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    return absl::InvalidArgumentError(absl::StrCat("--ready-file ", path,
                                                   ": the file is a symbolic link; the worker creates and "
                                                   "removes this file, so it would remove the link: "
                                                   "give the name of the file itself"));
  }
  return CheckLeftOver("--ready-file", path, /*mark=*/"");
}

ReadyFile::ReadyFile(std::string path, WorkerObserver* next, const Logger& log)
    : ForwardingObserver(next), path_(std::move(path)), log_(log) {
  if (!path_.empty()) RemoveFile(path_).IgnoreError();  // a folder that cannot be written to is told below
}

ReadyFile::~ReadyFile() {
  const MutexLock lock(&mutex_);
  Set(false);
}

void ReadyFile::Set(bool ready) {
  // It may have been removed, for example with the files of an old run.
  if (path_.empty() || (ready == there_ && (!ready || warned_ || FileExists(path_)))) return;
  there_ = ready;
  if (!ready) {
    RemoveFile(path_).IgnoreError();
    return;
  }
  // Not synced: after a power cut it says nothing.
  const FileDescriptor file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  warned_ = file.get() < 0;
  if (warned_) log_.Warning("cannot make the file of --ready-file", {{"path", path_}});
}

void ReadyFile::OnJoined(const JoinedRun& info, bool rejoin) {
  {
    const MutexLock lock(&mutex_);
    joined_ = true;
    unanswered_ = 0;
    Set(true);
  }
  ForwardingObserver::OnJoined(info, rejoin);
}

void ReadyFile::OnHeartbeat(bool ok, Duration round_trip) {
  {
    const MutexLock lock(&mutex_);
    unanswered_ = ok ? 0 : unanswered_ + 1;
    Set(joined_ && unanswered_ < kPatience);
  }
  ForwardingObserver::OnHeartbeat(ok, round_trip);
}

}  // namespace atl
