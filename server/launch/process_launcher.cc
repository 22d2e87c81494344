#include "server/launch/process_launcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/human.h"
#include "common/random.h"
#include "common/status.h"
#include "common/thread.h"
#include "server/launch/wanted_workers.h"

namespace atl {
namespace {

// Room for the number behind it.
constexpr size_t kLongestPrefix = kMaxWorkerName - 10;

absl::Status CheckPrefix(const std::string& prefix) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  const bool good = !prefix.empty() && prefix.size() <= kLongestPrefix && prefix[0] >= 'a' &&
                    prefix[0] <= 'z' && std::all_of(prefix.begin(), prefix.end(), allowed);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("workers cannot be named '%s0': a prefix has at most %d characters of a-z 0-9 . -, and "
                      "the first is a-z",
                      prefix, kLongestPrefix));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessLauncher>> ProcessLauncher::Create(ProcessLauncherOptions options,
                                                                         const Clock* clock) {
  ATOLL_RETURN_IF_ERROR(CheckPrefix(options.name_prefix));
  FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoToStatus(errno, "make an eventfd for the launcher");
  WorkerSlotOptions slot{.command = options.command,
                         .log_dir = options.log_dir,
                         .grace = options.grace,
                         .settled = options.settled,
                         .backoff = options.backoff};
  return std::unique_ptr<ProcessLauncher>(
      new ProcessLauncher(std::move(options), std::move(slot), std::move(wake), clock));
}

ProcessLauncher::ProcessLauncher(ProcessLauncherOptions options, WorkerSlotOptions slot_options,
                                 FileDescriptor wake, const Clock* clock)
    : options_(std::move(options)),
      slot_options_(std::move(slot_options)),
      wake_(std::move(wake)),
      clock_(clock),
      thread_([this] { Loop(); }) {}

ProcessLauncher::~ProcessLauncher() { Shutdown(); }

void ProcessLauncher::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

absl::Status ProcessLauncher::Scale(uint32_t target) {
  const std::set<uint32_t> strangers = Strangers();
  MutexLock lock(&mutex_);
  if (requests_.shutting_down) return absl::UnavailableError("the coordinator is shutting down");
  requests_.wanted = ChooseNumbers(requests_.wanted, requests_.drained, strangers, target);
  requests_.revive = true;
  scaled_ = true;
  if (!requests_.wanted.empty()) made_ = std::max(made_, *requests_.wanted.rbegin() + 1);
  Wake();
  return absl::OkStatus();
}

absl::Status ProcessLauncher::StartAgain() {
  MutexLock lock(&mutex_);
  if (requests_.shutting_down) return absl::UnavailableError("the coordinator is shutting down");
  requests_.start_again = true;
  Wake();
  return absl::OkStatus();
}

/// Wanted workers that are no members of the run.
std::set<uint32_t> ProcessLauncher::Strangers() const {
  std::set<uint32_t> numbers;
  IsMember is_member;
  {
    MutexLock lock(&mutex_);
    numbers = requests_.wanted;
    is_member = is_member_;
  }
  if (!is_member) return {};
  std::erase_if(numbers,
                [&](uint32_t number) { return is_member(NumberedName(options_.name_prefix, number)); });
  return numbers;
}

absl::StatusOr<std::string> ProcessLauncher::Release(const WorkerName& name) {
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  // Before the first Scale these are the ones that an earlier life of ours let go.
  if (!number || (scaled_ && !requests_.wanted.contains(*number))) return std::string();
  requests_.wanted.erase(*number);
  requests_.drained.insert(*number);
  made_ = std::max(made_, *number + 1);
  Wake();
  return absl::StrFormat("the launcher does not restart it; `atollctl workers restart %s` does", name);
}

bool ProcessLauncher::IsReleased(const WorkerName& name) const {
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  return number && requests_.drained.contains(*number);
}

void ProcessLauncher::Reclaim(const WorkerName& name) {
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  if (!number || requests_.drained.erase(*number) == 0) return;
  requests_.wanted.insert(*number);
  Wake();
}

void ProcessLauncher::Lost(const WorkerName& name, bool restart) {
  if (restart) return Restart(name).IgnoreError();  // NotFound: it is not wanted any more, and ends
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  if (!number || !requests_.drained.contains(*number)) return;
  requests_.end.insert(*number);
  Wake();
}

void ProcessLauncher::SetMembers(IsMember is_member) {
  MutexLock lock(&mutex_);
  is_member_ = std::move(is_member);
}

absl::Status ProcessLauncher::Restart(const WorkerName& name) {
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  if (requests_.shutting_down) return absl::UnavailableError("the coordinator is shutting down");
  if (!number || !(requests_.wanted.contains(*number) || requests_.drained.contains(*number))) {
    return absl::NotFoundError(
        absl::StrFormat("%s is not a worker of this launcher: it has %d workers, named %s0 and so on", name,
                        requests_.wanted.size(), options_.name_prefix));
  }
  requests_.drained.erase(*number);
  requests_.wanted.insert(*number);
  requests_.restart.insert(*number);
  made_ = std::max(made_, *number + 1);
  Wake();
  return absl::OkStatus();
}

bool ProcessLauncher::Owns(const WorkerName& name) const {
  const std::optional<uint32_t> number = NumberOf(options_.name_prefix, name);
  MutexLock lock(&mutex_);
  return number && *number < made_;
}

void ProcessLauncher::SetEventSink(EventSink sink) {
  MutexLock lock(&mutex_);
  sink_ = std::move(sink);
}

void ProcessLauncher::SetCoordinator(const std::string& address) {
  MutexLock lock(&mutex_);
  requests_.coordinator = address;
  Wake();
}

LauncherView ProcessLauncher::view() const {
  LauncherView view;
  view.kind = "process";
  const MonoTime now = clock_->Now();
  MutexLock lock(&mutex_);
  view.target = static_cast<uint32_t>(requests_.wanted.size());
  for (const uint32_t number : requests_.wanted) {
    view.wanted.push_back(NumberedName(options_.name_prefix, number));
  }
  for (const uint32_t number : requests_.drained) {
    view.drained.push_back(NumberedName(options_.name_prefix, number));
  }
  size_t troubled = 0;
  for (const Shown& shown : shown_) {
    LaunchedWorker worker = shown.worker;
    if (worker.age) *worker.age += now - shown_at_;
    worker.next_start = std::max(Duration::zero(), worker.next_start - (now - shown_at_));
    const bool troubles = !shown.trouble.empty() && (!shown.settles_at || now < *shown.settles_at);
    if (troubles && troubled++ == 0) {
      const std::string next =
          shown.settles_at ? "restarting" : "next start in " + HumanDuration(worker.next_start);
      view.error = absl::StrFormat("%s %s; %s; its log: %s", worker.name, shown.trouble, next, shown.log);
    }
    view.workers.push_back(std::move(worker));
  }
  if (troubled > 1) view.error += absl::StrFormat(" (and %d more)", troubled - 1);
  if (requests_.shutting_down) return view;
  // The thread has not got to them yet.
  std::set<uint32_t> missing = requests_.wanted;
  for (const Shown& shown : shown_) missing.erase(*NumberOf(options_.name_prefix, shown.worker.name));
  for (const uint32_t number : missing) {
    view.workers.push_back({.name = NumberedName(options_.name_prefix, number)});
  }
  std::ranges::stable_sort(view.workers, {}, [this](const LaunchedWorker& worker) {
    return *NumberOf(options_.name_prefix, worker.name);
  });
  return view;
}

void ProcessLauncher::Shutdown() {
  {
    MutexLock lock(&mutex_);
    requests_.shutting_down = true;
  }
  Wake();
  MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

ProcessLauncher::Requests ProcessLauncher::TakeRequests() {
  MutexLock lock(&mutex_);
  Requests requests = requests_;
  requests_.revive = false;
  requests_.start_again = false;
  requests_.restart.clear();
  requests_.end.clear();
  return requests;
}

void ProcessLauncher::Apply(const Requests& requests, MonoTime now) {
  const std::set<uint32_t> wanted = requests.shutting_down ? std::set<uint32_t>() : requests.wanted;
  for (const uint32_t number : wanted) {
    if (slots_.contains(number)) continue;
    slots_
        .try_emplace(number, slot_options_, NumberedName(options_.name_prefix, number), number,
                     DeriveSeed(options_.seed, number))
        .first->second.Restart(now);
  }
  for (auto& [number, slot] : slots_) {
    if (!wanted.contains(number)) {
      if (requests.drained.contains(number) && !requests.shutting_down) {
        slot.Release();
        if (requests.end.contains(number)) slot.EndDrained(now);
      } else {
        slot.Stop(now);
      }
      continue;
    }
    slot.Want(now);
    if (requests.revive || requests.start_again) slot.Revive(now);
    if (requests.start_again) slot.ExpectEnd(now);
    if (requests.restart.contains(number)) slot.Restart(now);
  }
}

void ProcessLauncher::Publish(MonoTime now) {
  std::vector<Shown> shown;
  for (const auto& [number, slot] : slots_)
    shown.push_back({.worker = slot.Show(now),
                     .trouble = slot.trouble(),
                     .settles_at = slot.settles_at(),
                     .log = slot.log_path()});
  MutexLock lock(&mutex_);
  shown_ = std::move(shown);
  shown_at_ = now;
}

void ProcessLauncher::Announce(const std::vector<Event>& events) {
  EventSink sink;
  {
    MutexLock lock(&mutex_);
    sink = sink_;
  }
  if (!sink) return;
  for (const Event& event : events) sink(event);
}

void ProcessLauncher::WaitForSomething(bool timed) const {
  std::vector<pollfd> watched = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  std::optional<MonoTime> next;
  for (const auto& [number, slot] : slots_) {
    if (slot.descriptor() >= 0) watched.push_back({.fd = slot.descriptor(), .events = POLLIN, .revents = 0});
    const auto due = slot.due();
    if (due && (!next || *due < *next)) next = due;
  }
  int timeout_ms = -1;
  if (timed && next) {
    const double wait = std::clamp(ToSeconds(*next - clock_->Now()), 0.0, 3600.0);
    timeout_ms = static_cast<int>(wait * 1000) + 1;  // rounded up: too early would be to look in vain
  }
  ::poll(watched.data(), watched.size(), timeout_ms);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &count, sizeof(count));
}

void ProcessLauncher::Loop() {
  SetThreadName("launcher");
  while (true) {
    const Requests requests = TakeRequests();
    const MonoTime now = clock_->Now();
    Apply(requests, now);
    std::vector<Event> events;
    for (auto& [number, slot] : slots_) slot.Advance(now, requests.coordinator, events);
    std::erase_if(slots_, [](const auto& entry) { return entry.second.gone(); });
    Publish(now);
    Announce(events);
    if (requests.shutting_down && slots_.empty()) return;
    // Without the coordinator's address nothing is started, so nothing is ever due.
    WaitForSomething(/*timed=*/!requests.coordinator.empty());
  }
}

}  // namespace atl
