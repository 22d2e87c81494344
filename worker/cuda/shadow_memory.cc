#include "worker/cuda/shadow_memory.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace atl::device::host {
namespace {

bool Conflicts(const Intervals& intervals, Mark mark, uint32_t thread) {
  if (mark.interval == 0 || !intervals.Unordered(mark.interval)) return false;
  return mark.thread != thread || !intervals.InBlock(mark.interval);
}

std::string Other(const Intervals& intervals, Mark mark, const char* did) {
  if (intervals.InBlock(mark.interval)) {
    return absl::StrFormat("thread %d %s it, with no barrier between", mark.thread, did);
  }
  return absl::StrFormat("thread %d of block %d %s it, and nothing orders blocks", mark.thread,
                         intervals.BlockOf(mark.interval), did);
}

/// Every block has shared memory of its own.
void ForgetEarlierBlocks(const Intervals& intervals, Shadow& shadow) {
  for (Mark* mark : {&shadow.writer, &shadow.readers[0], &shadow.readers[1]}) {
    if (!intervals.InBlock(mark->interval)) *mark = {};
  }
  if (shadow.writer.interval == 0) shadow.written = shadow.atomic = false;
}

void RecordRead(const Intervals& intervals, uint32_t thread, Shadow& shadow) {
  const Mark mark{.interval = intervals.now(), .thread = thread};
  Mark& first = shadow.readers[0];
  // A read by another block stays known: only a write by this block can conflict with it.
  const bool replaces = !intervals.InLaunch(first.interval) ||
                        (intervals.InBlock(first.interval) && first.interval != intervals.now());
  if (replaces) {
    first = mark;
  } else if (first.interval != mark.interval || first.thread != mark.thread) {
    shadow.readers[1] = mark;
  }
}

}  // namespace

uint32_t Intervals::BlockOf(uint64_t then) const {
  const auto after = std::ranges::upper_bound(blocks_, then, {}, &std::pair<uint64_t, uint32_t>::first);
  return after == blocks_.begin() ? 0 : std::prev(after)->second;
}

std::optional<std::string> RecordAccess(const Intervals& intervals, const Region& region, uint32_t thread,
                                        Access access, Shadow& shadow) {
  std::optional<std::string> finding;
  if (region.shared) ForgetEarlierBlocks(intervals, shadow);
  const bool both_atomic = access == Access::kAtomic && shadow.atomic;
  if (access != Access::kWrite && !shadow.written) {
    finding = "nobody has written it";
  } else if (!both_atomic && Conflicts(intervals, shadow.writer, thread)) {
    finding = Other(intervals, shadow.writer, shadow.atomic ? "atomically changed" : "wrote");
  }
  if (access != Access::kRead) {
    for (const Mark reader : shadow.readers) {
      if (!finding && Conflicts(intervals, reader, thread)) finding = Other(intervals, reader, "read");
    }
    shadow.writer = {.interval = intervals.now(), .thread = thread};
    shadow.atomic = access == Access::kAtomic;
    shadow.written = true;
  } else {
    RecordRead(intervals, thread, shadow);
  }
  return finding;
}

}  // namespace atl::device::host
