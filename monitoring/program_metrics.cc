#include "monitoring/program_metrics.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "atoll/version.h"
#include "common/line_writer.h"
#include "common/resident_bytes.h"

namespace atl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double CpuSeconds() {
  rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return kUnknown;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentMemory() {
  const std::optional<uint64_t> bytes = ResidentBytes();
  return bytes ? static_cast<double>(*bytes) : kUnknown;
}

double OpenFiles() {
  std::error_code error;
  std::filesystem::directory_iterator files("/proc/self/fd", error);
  double open = error ? kUnknown : -1;  // without the folder that is being read
  for (const std::filesystem::directory_iterator end; !error && files != end; files.increment(error)) ++open;
  return open;
}

double MostFiles() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : kUnknown;
}

}  // namespace

void AddProgramMetrics(MetricsRegistry* registry, std::string_view program) {
  registry->Declare(MetricType::kGauge, "atoll_build_info", "Name and version of the program; always 1.",
                    {"program", "version", "revision"});
  registry
      ->AddGauge("atoll_build_info", "",
                 {{"program", std::string(program)},
                  {"version", std::string(kVersion)},
                  {"revision", std::string(kGitRevision)}})
      .Set(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  registry
      ->AddGauge("process_start_time_seconds", "Start time of the program, in seconds since 1970-01-01 UTC.")
      .Set(std::chrono::duration<double>(now).count());
  registry->AddGauge("process_max_fds", "Limit of open files and sockets.").Set(MostFiles());
  const Gauge open = registry->AddGauge("process_open_fds", "Open files and sockets.");
  const Gauge resident = registry->AddGauge(
      "process_resident_memory_bytes",
      "Resident memory, including pages of mapped contributions, which the kernel can reclaim.");
  MirroredCounter cpu(registry, "process_cpu_seconds_total", "CPU time used by the process.");
  MirroredCounter dropped(registry, "atoll_log_lines_dropped_total",
                          "Lines missing in the log, because nothing read it or it could not be written.");
  registry->BeforeScrape([open, resident, cpu, dropped]() mutable {
    open.Set(OpenFiles());
    resident.Set(ResidentMemory());
    cpu.Follow(CpuSeconds());
    dropped.Follow(static_cast<double>(DroppedLogLines()));
  });
}

}  // namespace atl
