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
    : path_(std::move(path)), next_(next), log_(log) {
  if (!path_.empty()) RemoveFile(path_).IgnoreError();  // a folder that cannot be written to is told below
}

ReadyFile::~ReadyFile() {
  const MutexLock lock(&mutex_);
  Set(false);
}

void ReadyFile::Set(bool ready) {
  if (path_.empty() || ready == there_) return;
  there_ = ready;
  if (!ready) {
    RemoveFile(path_).IgnoreError();
    return;
  }
  // Not synced: after a power cut it says nothing.
  const FileDescriptor file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  if (file.get() < 0) log_.Warning("cannot make the file of --ready-file", {{"path", path_}});
}

void ReadyFile::OnJoined(const JoinedRun& info, bool rejoin) {
  {
    const MutexLock lock(&mutex_);
    joined_ = true;
    unanswered_ = 0;
    Set(true);
  }
  next_->OnJoined(info, rejoin);
}

void ReadyFile::OnHeartbeat(bool ok, Duration round_trip) {
  {
    const MutexLock lock(&mutex_);
    unanswered_ = ok ? 0 : unanswered_ + 1;
    Set(joined_ && unanswered_ < kPatience);
  }
  next_->OnHeartbeat(ok, round_trip);
}

void ReadyFile::OnPhase(WorkerPhase phase) { next_->OnPhase(phase); }
void ReadyFile::OnInnerStep(const InnerStepResult& step, double learning_rate, Duration compute) {
  next_->OnInnerStep(step, learning_rate, compute);
}
void ReadyFile::OnPulled(FragmentId fragment, Version version, uint64_t wire_bytes, Duration waited,
                         Duration transfer) {
  next_->OnPulled(fragment, version, wire_bytes, waited, transfer);
}
void ReadyFile::OnPushed(FragmentId fragment, PushResultKind result, uint64_t wire_bytes, Duration exchange) {
  next_->OnPushed(fragment, result, wire_bytes, exchange);
}
void ReadyFile::OnUsed(FragmentId fragment, Version version, uint64_t steps_since_push) {
  next_->OnUsed(fragment, version, steps_since_push);
}
void ReadyFile::OnPushSkipped(FragmentId fragment) { next_->OnPushSkipped(fragment); }
void ReadyFile::OnRound(uint32_t steps, uint64_t tokens, double mean_loss, Duration duration) {
  next_->OnRound(steps, tokens, mean_loss, duration);
}
void ReadyFile::OnRoundNotFinite() { next_->OnRoundNotFinite(); }
void ReadyFile::OnEvaluated(const EvaluationReport& report, Duration compute) {
  next_->OnEvaluated(report, compute);
}
void ReadyFile::OnRetry(const absl::Status& error, Duration pause) { next_->OnRetry(error, pause); }
void ReadyFile::OnWaited(Duration waited) { next_->OnWaited(waited); }

}  // namespace atl
