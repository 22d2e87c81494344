#include "common/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace atl {
namespace {

constexpr uint64_t kWhenNothingIsKnown = uint64_t{1} << 30;

std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t bytes = 0;
  // "max" is not a number and means no limit.
  if (!(file >> word) || !absl::SimpleAtoi(word, &bytes)) return std::nullopt;
  return bytes;
}

/// The smallest limit from the folder of this cgroup up to the root. `path` as in /proc/self/cgroup: it may
/// name folders that a container does not see.
std::optional<uint64_t> SmallestUpwards(const std::string& root, std::string path, const std::string& file) {
  std::optional<uint64_t> smallest;
  while (true) {
    const std::optional<uint64_t> here = NumberIn(absl::StrCat(root, path, "/", file));
    if (here) smallest = std::min(here, smallest ? smallest : here);
    const size_t slash = path.find_last_of('/');
    if (path.empty() || slash == std::string::npos) return smallest;
    path.resize(slash);
  }
}

std::optional<uint64_t> CgroupLimit(const MemoryLimitPaths& paths) {
  std::ifstream file(paths.self_cgroup);
  std::string line;
  std::optional<uint64_t> smallest;
  while (std::getline(file, line)) {
    // "4:memory:/a/b" of version 1, "0::/a/b" of version 2.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool first = std::ranges::find(controllers, "memory") != controllers.end();
    if (!first && !parts[1].empty()) continue;
    const std::string path(absl::StripSuffix(parts[2], "/"));
    const std::optional<uint64_t> limit =
        first ? SmallestUpwards(paths.cgroup_root + "/memory", path, "memory.limit_in_bytes")
              : SmallestUpwards(paths.cgroup_root, path, "memory.max");
    if (limit) smallest = std::min(limit, smallest ? smallest : limit);
  }
  return smallest;
}

std::optional<uint64_t> PhysicalMemory(const std::string& meminfo) {
  std::ifstream file(meminfo);
  std::string line;
  while (std::getline(file, line)) {
    std::string_view text = line;
    constexpr std::string_view kName = "MemTotal:";
    if (!text.starts_with(kName)) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(kName.size()), ' ', absl::SkipWhitespace());
    uint64_t kibibytes = 0;
    if (!words.empty() && absl::SimpleAtoi(words.front(), &kibibytes)) return kibibytes << 10;
  }
  return std::nullopt;
}

}  // namespace

MemoryLimit ReadMemoryLimit(const MemoryLimitPaths& paths) {
  const std::optional<uint64_t> cgroup = CgroupLimit(paths);
  const std::optional<uint64_t> physical = PhysicalMemory(paths.meminfo);
  // Without a limit, version 1 reports a number larger than any machine's memory.
  if (cgroup && (!physical || *cgroup < *physical)) return {.bytes = *cgroup, .source = "cgroup"};
  if (physical) return {.bytes = *physical, .source = "physical memory"};
  return {.bytes = kWhenNothingIsKnown, .source = "nothing that could be read", .known = false};
}

}  // namespace atl
