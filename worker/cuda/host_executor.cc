#include "worker/cuda/host_executor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace atl::device {
namespace {

constexpr size_t kStackBytes = 64 << 10;

thread_local host::ExecutorThread* current = nullptr;

std::string At(const host::Place& place) {
  const std::string_view file = place.file;
  return absl::StrCat(std::string(file.substr(file.rfind('/') + 1)), ":", place.line);
}

bool Same(const host::Place& a, const host::Place& b) {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

const char* NameOf(host::Access access) {
  switch (access) {
    case host::Access::kRead:
      return "reads";
    case host::Access::kWrite:
      return "writes";
    case host::Access::kAtomic:
      return "atomically changes";
  }
  return "accesses";
}

}  // namespace

host::ExecutorThread& host::Current() {
  if (current == nullptr) std::abort();  // a primitive outside of a launch
  return *current;
}

HostExecutor::HostExecutor(const Options& options) : options_(options), random_(options.seed) {}
HostExecutor::~HostExecutor() { EndThreads(); }

host::Region* HostExecutor::AddGlobal(const std::string& name, std::byte* data, size_t bytes, size_t element,
                                      Content content) {
  host::Region& region = globals_.emplace_back();
  region.name = name;
  region.data = data;
  region.bytes = bytes;
  region.element = element;
  region.shadows.resize(bytes / element);
  for (host::Shadow& shadow : region.shadows) shadow.written = content == Content::kInitialised;
  return &region;
}

host::Region* HostExecutor::Shared(const char* name, host::Place place, size_t bytes, size_t element) {
  // Two threads declare the same array at the same place.
  const std::string key = absl::StrCat(name, "@", At(place));
  for (host::Region& region : shared_) {
    if (region.name == key) return &region;
  }
  constexpr size_t kAlignment = 64;
  shared_memory_.push_back(std::make_unique<std::byte[]>(bytes + kAlignment));
  void* data = shared_memory_.back().get();
  size_t room = bytes + kAlignment;
  host::Region& region = shared_.emplace_back();
  region.name = key;
  region.data = static_cast<std::byte*>(std::align(kAlignment, bytes, data, room));
  region.bytes = bytes;
  region.element = element;
  region.shared = true;
  region.shadows.resize(bytes / element);
  return &region;
}

absl::Status HostExecutor::Run(const char* kernel, uint32_t blocks, uint32_t threads,
                               const std::function<void()>& run) {
  if (threads == 0 || threads > 1024 || threads % kWarp != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("kernel %s: a block of %d threads; it must have a multiple of %d, at most 1024",
                        kernel, threads, kWarp));
  }
  kernel_ = kernel;
  reports_.clear();
  further_reports_ = 0;
  accesses_ = 0;
  stopped_ = false;
  shared_.clear();
  shared_memory_.clear();
  for (host::Region& region : globals_) region.read = region.written = 0;
  intervals_.BeginLaunch();
  host::ExecutorThread* const before = current;
  current = this;
  std::vector<uint32_t> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random_);
  for (const uint32_t block : order) {
    MakeThreads(threads, run);
    RunBlock(block);
    if (stopped_) break;
  }
  current = before;
  if (reports_.empty()) return absl::OkStatus();
  if (further_reports_ > 0) reports_.push_back(absl::StrFormat("and %d findings more", further_reports_));
  return absl::InternalError(absl::StrJoin(reports_, "\n"));
}

/// A fiber that runs one thread of a kernel after another: to AddressSanitizer a new fiber is expensive.
struct HostExecutor::Worker {
  Worker()
      : fiber(FiberStack(kStackBytes), [this] {
          while (true) {
            (*run)();
            idle = true;
            fiber.GiveWay();
          }
        }) {}

  const std::function<void()>* run = nullptr;
  bool idle = true;
  Fiber fiber;
};

std::vector<std::unique_ptr<HostExecutor::Worker>>& HostExecutor::IdleWorkers() {
  thread_local std::vector<std::unique_ptr<Worker>> workers;
  return workers;
}

// A worker that is not idle waits for something that never comes, and is destroyed.
void HostExecutor::EndThreads() {
  for (Thread& thread : threads_) {
    if (thread.worker->idle) IdleWorkers().push_back(std::move(thread.worker));
  }
  threads_.clear();
}

void HostExecutor::MakeThreads(uint32_t threads, const std::function<void()>& run) {
  EndThreads();
  std::vector<std::unique_ptr<Worker>>& workers = IdleWorkers();
  for (uint32_t i = 0; i < threads; ++i) {
    if (workers.empty()) workers.push_back(std::make_unique<Worker>());
    Thread& thread = threads_.emplace_back();
    thread.worker = std::move(workers.back());
    workers.pop_back();
    thread.worker->run = &run;
    thread.worker->idle = false;
  }
  warps_.assign(threads / kWarp, Warp());
  ready_.resize(threads);
  std::iota(ready_.begin(), ready_.end(), 0u);
  at_barrier_ = 0;
}

void HostExecutor::RunBlock(uint32_t block) {
  block_ = block;
  intervals_.BeginBlock(block);
  uint32_t ended = 0;
  while (ended < threads_.size() && !stopped_) {
    if (ready_.empty()) {
      Report(absl::StrCat("no thread can go on: ", Waiting()));
      stopped_ = true;
      return;
    }
    const size_t index = random_.Below(ready_.size());
    running_ = ready_[index];
    ready_[index] = ready_.back();
    ready_.pop_back();
    Thread& thread = threads_[running_];
    thread.worker->fiber.Resume();
    if (!thread.worker->idle) continue;
    thread.state = State::kEnded;
    ++ended;
  }
}

std::string HostExecutor::Waiting() const {
  uint32_t ended = 0;
  std::map<std::string, std::vector<uint32_t>> waits;
  for (uint32_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state == State::kEnded) {
      ++ended;
      continue;
    }
    waits[absl::StrCat(threads_[i].state == State::kAtBarrier ? "at the barrier " : "for its warp at ",
                       At(threads_[i].place))]
        .push_back(i);
  }
  std::vector<std::string> parts;
  for (const auto& [where, threads] : waits) {
    parts.push_back(absl::StrFormat("%d of %d threads wait %s (first: thread %d)", threads.size(),
                                    threads_.size(), where, threads.front()));
  }
  if (ended > 0) parts.push_back(absl::StrFormat("%d have left the kernel", ended));
  return absl::StrJoin(parts, ", ");
}

void HostExecutor::GiveWay() { threads_[running_].worker->fiber.GiveWay(); }

void HostExecutor::MayGiveWay() {
  if (options_.accesses_per_switch == 0 || random_.Below(options_.accesses_per_switch) != 0) return;
  ready_.push_back(running_);
  GiveWay();
}

void HostExecutor::Barrier(host::Place place) {
  if (at_barrier_ == 0) barrier_ = place;
  if (!Same(place, barrier_)) {
    Report(absl::StrFormat(
        "thread %d is at the barrier %s while others wait at the barrier %s: the block's threads diverge",
        running_, At(place), At(barrier_)));
    Stop();
  }
  if (++at_barrier_ == threads_.size()) {
    ReleaseBarrier();
    return;
  }
  threads_[running_].state = State::kAtBarrier;
  threads_[running_].place = place;
  GiveWay();
}

void HostExecutor::ReleaseBarrier() {
  at_barrier_ = 0;
  intervals_.Next();
  for (uint32_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state != State::kAtBarrier) continue;
    threads_[i].state = State::kReady;
    ready_.push_back(i);
  }
}

const uint64_t* HostExecutor::Exchange(uint64_t bits, host::Place place) {
  const uint32_t first = running_ / kWarp * kWarp;
  Warp& warp = warps_[running_ / kWarp];
  if (warp.arrived == 0) warp.place = place;
  if (!Same(place, warp.place)) {
    Report(
        absl::StrFormat("thread %d is at the warp operation %s while others of its warp are at %s: the "
                        "warp's threads diverge",
                        running_, At(place), At(warp.place)));
    Stop();
  }
  uint64_t* const values = warp.values[warp.exchanges % 2];
  values[running_ - first] = bits;
  if (++warp.arrived < kWarp) {
    threads_[running_].state = State::kAtWarp;
    threads_[running_].place = place;
    GiveWay();
    return values;
  }
  warp.arrived = 0;
  ++warp.exchanges;
  for (uint32_t i = first; i < first + kWarp; ++i) {
    if (i == running_) continue;
    threads_[i].state = State::kReady;
    ready_.push_back(i);
  }
  return values;
}

void* HostExecutor::Check(host::Region* region, const host::Request& request) {
  MayGiveWay();
  const auto who = [&] {
    return absl::StrFormat("thread %d %s %s[%d] (%d bytes) at %s: ", running_, NameOf(request.access),
                           region == nullptr ? "a span without memory" : region->name,
                           request.offset / (region == nullptr ? 1 : region->element), request.bytes,
                           At(request.place));
  };
  if (++accesses_ > options_.most_accesses) {
    Report(absl::StrFormat("the kernel has not ended after %d accesses; thread %d is at %s",
                           options_.most_accesses, running_, At(request.place)));
    Stop();
  }
  const size_t bytes = region == nullptr ? 0 : region->bytes;
  if (request.offset > bytes || request.bytes > bytes - request.offset) {
    Report(absl::StrFormat("%sout of bounds, it has %d elements", who(),
                           region == nullptr ? 0 : bytes / region->element));
    return nullptr;
  }
  std::byte* const at = region->data + request.offset;
  if (reinterpret_cast<uintptr_t>(at) % request.alignment != 0) {
    Report(absl::StrFormat("%sunaligned, the address must be a multiple of %d", who(), request.alignment));
    return nullptr;
  }
  for (size_t i = request.offset / region->element; i < (request.offset + request.bytes) / region->element;
       ++i) {
    const auto finding =
        host::RecordAccess(intervals_, *region, running_, request.access, region->shadows[i]);
    if (finding) Report(absl::StrCat(who(), *finding));
  }
  if (request.access != host::Access::kWrite) region->read += request.bytes;
  if (request.access != host::Access::kRead) region->written += request.bytes;
  return at;
}

void HostExecutor::Report(const std::string& report) {
  if (reports_.size() >= options_.most_reports) {
    ++further_reports_;
    return;
  }
  reports_.push_back(absl::StrFormat("kernel %s, block %d: %s", kernel_, block_, report));
}

void HostExecutor::Stop() {
  stopped_ = true;
  GiveWay();
}

std::vector<HostExecutor::Traffic> HostExecutor::traffic() const {
  std::vector<Traffic> all;
  for (const host::Region& region : globals_) all.push_back({region.name, region.read, region.written});
  return all;
}

size_t HostExecutor::shared_bytes() const {
  size_t bytes = 0;
  for (const host::Region& region : shared_) bytes += region.bytes;
  return bytes;
}

}  // namespace atl::device
