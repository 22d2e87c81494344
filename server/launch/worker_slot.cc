#include "server/launch/worker_slot.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/human.h"
#include "server/launch/last_error.h"

namespace atl {
namespace {

// A worker that is started again and again must not fill the disk with its last words.
constexpr uint64_t kLongLog = uint64_t{64} << 20;

// From an extension of a finished run to the end of a worker that left because it was finished.
constexpr Duration kExpectedEnd = Seconds(60);

void MoveLongLogAside(const std::string& path) {
  const auto size = FileSize(path);
  if (size.ok() && *size > kLongLog) RenameFile(path, path + ".1").IgnoreError();
}

}  // namespace

WorkerSlot::WorkerSlot(const WorkerSlotOptions& options, WorkerName name, uint32_t number, uint64_t seed)
    : options_(options),
      number_(number),
      log_path_(JoinPath(options.log_dir, name + ".log")),
      backoff_(options.backoff, seed) {
  shown_.name = std::move(name);
}

void WorkerSlot::Report(bool launched, std::string message, std::vector<Launcher::Event>& events) const {
  events.push_back({.launched = launched, .name = shown_.name, .message = std::move(message)});
}

void WorkerSlot::StartAt(MonoTime when, State state) {
  shown_.state = state;
  due_ = when;
}

void WorkerSlot::Ask(MonoTime now) {
  if (shown_.state != State::kRunning && shown_.state != State::kDraining) return;
  process_->Signal(SIGTERM);
  process_->Signal(SIGCONT);  // a frozen one would not hear it
  shown_.state = State::kStopping;
  killed_ = drained_ = false;
  due_ = now + options_.grace;
}

void WorkerSlot::Stop(MonoTime now) {
  again_ = drains_ = drained_ = false;
  trouble_.clear();
  Ask(now);
  if (process_) return;
  shown_.state = State::kStopped;
  gone_ = true;
}

void WorkerSlot::Release() {
  again_ = drains_ = false;
  trouble_.clear();
  if (shown_.state == State::kRunning) shown_.state = State::kDraining;
  if (!process_) shown_.state = State::kDrained;
}

void WorkerSlot::EndDrained(MonoTime now) {
  if (shown_.state != State::kDraining) return;
  Ask(now);
  drained_ = true;
}

void WorkerSlot::Want(MonoTime now) {
  drained_ = false;
  again_ = again_ || shown_.state == State::kStopping;
  if (shown_.state == State::kDraining) {
    shown_.state = State::kRunning;
    drains_ = true;
  }
  if (shown_.state == State::kDrained) StartAt(now, State::kStarting);
}

void WorkerSlot::Revive(MonoTime now) {
  if (shown_.state == State::kStopped) StartAt(now, State::kStarting);
}

void WorkerSlot::ExpectEnd(MonoTime now) {
  if (process_) expected_until_ = now + kExpectedEnd;
}

void WorkerSlot::Restart(MonoTime now) {
  again_ = true;
  drained_ = false;
  Ask(now);
  if (process_) return;
  backoff_.Reset();
  failures_ = 0;
  StartAt(now, State::kStarting);
}

void WorkerSlot::OnFailure(MonoTime now, const std::string& what, std::vector<Launcher::Event>& events) {
  ++failures_;
  const Duration delay = backoff_.Next();
  StartAt(now + delay, State::kWaiting);
  trouble_ = failures_ == 1 ? what : absl::StrFormat("%s (%d times in a row)", what, failures_);
  Report(false,
         absl::StrFormat("%s %s; restarting in %s (its log: %s)", shown_.name, trouble_, HumanDuration(delay),
                         log_path_),
         events);
}

std::string WorkerSlot::HowItStopped() const {
  if (shown_.state != State::kStopping || !killed_) return shown_.last_exit;
  return absl::StrFormat("%s: it did not end within %s of SIGTERM", shown_.last_exit,
                         HumanDuration(options_.grace));
}

void WorkerSlot::OnExit(MonoTime now, const ProcessExit& exit, std::vector<Launcher::Event>& events) {
  const Duration lived = now - started_;
  process_.reset();
  trouble_.clear();
  shown_.handle.clear();
  shown_.last_exit = absl::StrFormat("%s after %s", Describe(exit), HumanDuration(lived));
  if (lived >= options_.settled) {
    backoff_.Reset();
    failures_ = 0;
  }
  if (shown_.state == State::kStopping && !drained_) {
    Report(false, absl::StrFormat("%s was stopped: %s", shown_.name, HowItStopped()), events);
    gone_ = !again_;
    StartAt(now, again_ ? State::kStarting : State::kStopped);
    again_ = false;
  } else if (shown_.state == State::kStopping || shown_.state == State::kDraining) {
    Report(false,
           absl::StrFormat("%s was drained: %s; only `atollctl workers restart %s` starts it again",
                           shown_.name, HowItStopped(), shown_.name),
           events);
    shown_.state = State::kDrained;
  } else if (exit.clean() && drains_) {
    Report(false,
           absl::StrFormat("%s was drained: %s; the run needs it again", shown_.name, shown_.last_exit),
           events);
    StartAt(now, State::kStarting);
  } else if (exit.clean() && now < expected_until_) {
    expected_until_ = MonoTime();
    Report(false, absl::StrFormat("%s finished: %s; there is work again", shown_.name, shown_.last_exit),
           events);
    StartAt(now, State::kStarting);
  } else if (exit.clean()) {
    shown_.state = State::kStopped;
    Report(false, absl::StrFormat("%s finished: %s; not started again", shown_.name, shown_.last_exit),
           events);
  } else {
    const std::string error = LastError(log_path_, log_begin_);
    OnFailure(now, absl::StrCat("ended: ", shown_.last_exit, error.empty() ? "" : ": ", error), events);
  }
}

void WorkerSlot::Launch(MonoTime now, const std::string& coordinator, std::vector<Launcher::Event>& events) {
  absl::Status folders = CreateDirs(options_.log_dir);
  folders.Update(CreateDirs(options_.command.state_root));
  if (options_.command.prepare) folders.Update(options_.command.prepare(shown_.name));
  MoveLongLogAside(log_path_);
  log_begin_ = FileSize(log_path_).value_or(0);
  auto process =
      !folders.ok()
          ? absl::StatusOr<ChildProcess>(folders)
          : ChildProcess::Start(CommandLine(options_.command, shown_.name, number_, coordinator), log_path_);
  if (!process.ok()) {
    OnFailure(now, absl::StrCat("cannot be started: ", std::string(process.status().message())), events);
    return;
  }
  process_.emplace(*std::move(process));
  drains_ = false;
  started_ = now;
  shown_.state = State::kRunning;
  shown_.handle = absl::StrCat(process_->pid());
  shown_.restarts = lives_++;
  // One that failed again and again has only begun another short life, as far as anybody knows.
  if (failures_ < 2) trouble_.clear();
  Report(true,
         absl::StrFormat("%s started (process %d; its log: %s)", shown_.name, process_->pid(), log_path_),
         events);
}

void WorkerSlot::Advance(MonoTime now, const std::string& coordinator, std::vector<Launcher::Event>& events) {
  if (process_) {
    if (const auto exit = process_->Reap()) OnExit(now, *exit, events);
  }
  if (shown_.state == State::kStopping && !killed_ && now >= due_) {
    process_->Signal(SIGKILL);
    killed_ = true;
  }
  const bool waits = shown_.state == State::kStarting || shown_.state == State::kWaiting;
  if (waits && now >= due_ && !coordinator.empty()) Launch(now, coordinator, events);
}

std::optional<MonoTime> WorkerSlot::due() const {
  const bool timed = shown_.state == State::kStarting || shown_.state == State::kWaiting ||
                     (shown_.state == State::kStopping && !killed_);
  return timed ? std::optional(due_) : std::nullopt;
}

std::optional<MonoTime> WorkerSlot::settles_at() const {
  return process_ ? std::optional(started_ + options_.settled) : std::nullopt;
}

LaunchedWorker WorkerSlot::Show(MonoTime now) const {
  LaunchedWorker shown = shown_;
  if (process_) shown.age = now - started_;
  if (shown.state == State::kWaiting) shown.next_start = std::max(Duration::zero(), due_ - now);
  return shown;
}

}  // namespace atl
