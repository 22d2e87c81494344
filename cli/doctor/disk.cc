#include "cli/doctor/disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kMostProbeBytes = uint64_t{256} << 20;
constexpr uint64_t kProbePart = 8;  // fraction of the free space: one eighth
constexpr size_t kBlockBytes = size_t{4} << 20;
constexpr int kSyncs = 20;
constexpr size_t kSyncBytes = 4096;
constexpr double kSlowBytesPerSecond = 100e6;
constexpr double kSlowSyncSeconds = 0.02;
constexpr uint64_t kLittleSpace = uint64_t{10} << 30;

struct DiskSpeed {
  double bytes_per_second = 0;
  double sync_seconds = 0;  // median, of 4 KiB
};

absl::StatusOr<DiskSpeed> Measure(const std::string& path, uint64_t probe_bytes, const Clock& clock) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kTruncate));
  // Do not write zeros: a file system may store them without writing anything.
  std::vector<std::byte> block(kBlockBytes);
  uint64_t noise = 0x9e3779b97f4a7c15;
  for (size_t i = 0; i < block.size(); i += sizeof noise) {
    noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;  // xorshift64 (Marsaglia 2003)
    std::memcpy(block.data() + i, &noise, sizeof noise);
  }
  const MonoTime started = clock.Now();
  for (uint64_t offset = 0; offset < probe_bytes; offset += kBlockBytes) {
    ATOLL_RETURN_IF_ERROR(file.WriteAt(offset, block));
  }
  ATOLL_RETURN_IF_ERROR(file.Sync());
  DiskSpeed speed;
  speed.bytes_per_second = static_cast<double>(probe_bytes) / ToSeconds(clock.Now() - started);
  std::vector<double> syncs;
  for (int i = 0; i < kSyncs; ++i) {
    const MonoTime before = clock.Now();
    ATOLL_RETURN_IF_ERROR(file.WriteAt(probe_bytes + static_cast<uint64_t>(i) * kSyncBytes,
                                       std::span(block).first(kSyncBytes)));
    ATOLL_RETURN_IF_ERROR(file.Sync());
    syncs.push_back(ToSeconds(clock.Now() - before));
  }
  std::ranges::nth_element(syncs, syncs.begin() + kSyncs / 2);
  speed.sync_seconds = syncs[kSyncs / 2];
  return speed;
}

}  // namespace

uint64_t ProbeBytes(uint64_t free_bytes) {
  const uint64_t most = std::min(kMostProbeBytes, free_bytes / kProbePart);
  return most / kBlockBytes * kBlockBytes;
}

Check JudgeDiskSpeed(double bytes_per_second) {
  const std::string text =
      absl::StrFormat("%s/s written and synced", HumanBytes(static_cast<uint64_t>(bytes_per_second)));
  if (bytes_per_second >= kSlowBytesPerSecond) return Ok("disk speed", text);
  return Warn("disk speed", text,
              "every contribution is synced before it is acknowledged: use a faster disk for the data "
              "directory, not a network share");
}

Check JudgeSyncLatency(double seconds) {
  const std::string text = HumanDuration(Seconds(seconds)) + " for a small synced write";
  if (seconds <= kSlowSyncSeconds) return Ok("disk sync", text);
  return Warn("disk sync", text,
              "every version waits for a few such writes: put the data directory on an SSD");
}

Check JudgeFreeSpace(uint64_t free_bytes, const std::optional<DiskNeed>& need) {
  const std::string text = HumanBytes(free_bytes) + " free";
  if (!need || !need->bytes) {
    if (free_bytes >= kLittleSpace) return Ok("disk space", text);
    return Warn("disk space", text,
                need ? need->remedy : "give a CONFIG to compare this with the needs of the run");
  }
  std::string both = absl::StrFormat("%s, the run needs %s", text, HumanBytes(*need->bytes));
  if (need->checkpoint_bytes > 0) {
    absl::StrAppendFormat(&both, ", %s of it for checkpoints", HumanBytes(need->checkpoint_bytes));
  }
  if (need->used_bytes > 0) {
    absl::StrAppendFormat(&both, "; its directory uses %s now", HumanBytes(need->used_bytes));
  }
  if (free_bytes + need->used_bytes >= *need->bytes) return Ok("disk space", both);
  return Fail("disk space", both, need->remedy);
}

uint64_t UsedBytes(const std::string& directory) {
  uint64_t used = 0;
  std::set<std::pair<dev_t, ino_t>> seen;  // checkpoints share files with the run
  std::error_code error;
  using Walk = std::filesystem::recursive_directory_iterator;
  // A coordinator that serves the run may remove files meanwhile: what is gone ends the walk early at worst.
  for (Walk at(directory, std::filesystem::directory_options::skip_permission_denied, error), end;
       !error && at != end; at.increment(error)) {
    struct stat found {};
    if (::lstat(at->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    if (seen.emplace(found.st_dev, found.st_ino).second) used += static_cast<uint64_t>(found.st_blocks) * 512;
  }
  return used;
}

std::vector<Check> CheckDisk(const std::string& directory, const std::string& folder,
                             std::optional<DiskNeed> need, const Clock& clock) {
  if (need && FileExists(JoinPath(directory, "meta/CURRENT"))) need->used_bytes = UsedBytes(directory);
  const std::string probe = JoinPath(folder, absl::StrFormat(".atoll-doctor-%d", ::getpid()));
  const auto space = FreeBytes(folder);
  if (!space.ok())
    return {
        Fail("disk", static_cast<std::string>(space.status().message()), "give a folder on this machine")};
  std::vector<Check> checks = {JudgeFreeSpace(*space, need)};
  const uint64_t probe_bytes = ProbeBytes(*space);
  if (probe_bytes == 0) {
    checks.push_back(Warn("disk speed", absl::StrFormat("not measured: only %s free", HumanBytes(*space)),
                          "free some space; measuring would use space that a run on this disk needs"));
    return checks;
  }
  const auto speed = Measure(probe, probe_bytes, clock);
  RemoveFile(probe).IgnoreError();
  if (!speed.ok()) {
    checks.push_back(Fail("disk speed", static_cast<std::string>(speed.status().message()),
                          "make the data directory writable for the coordinator's user"));
    return checks;
  }
  checks.push_back(JudgeDiskSpeed(speed->bytes_per_second));
  checks.push_back(JudgeSyncLatency(speed->sync_seconds));
  return checks;
}

}  // namespace atl
