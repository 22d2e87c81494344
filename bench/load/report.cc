#include "bench/load/report.h"

#include <cstdio>

#include "nlohmann/json.hpp"

namespace atl {

void PrintLoad(const LoadSettings& settings, const LoadResult& result) {
  std::printf("%u workers, %u exchanging at once, %.0f s, %llu MiB of float32, %u cores\n\n",
              settings.workers, settings.pushing, settings.seconds,
              static_cast<unsigned long long>(settings.mib), result.cores);
  std::printf("| what | measured | goal |\n|---|---|---|\n");
  std::printf("| errors | %llu | 0 |\n", static_cast<unsigned long long>(result.errors));
  std::printf("| idle cost of a worker, KiB | %.1f | 100 |\n", result.idle_kib);
  std::printf("| heartbeats answered | %llu | |\n", static_cast<unsigned long long>(result.heartbeats));
  std::printf("| heartbeat p50 / p99 / most, seen by the client, ms | %.1f / %.1f / %.1f | p99 250 |\n",
              result.client_p50_ms, result.client_p99_ms, result.client_max_ms);
  std::printf("| heartbeat p99 in the coordinator, ms | at most %.0f | 50 |\n", result.server_p99_ms);
  std::printf("| contributions, told to come back later | %llu, %llu | |\n",
              static_cast<unsigned long long>(result.pushes),
              static_cast<unsigned long long>(result.postponed));
  std::printf("| versions published | %llu | |\n", static_cast<unsigned long long>(result.versions));
  std::printf("| coordinator's anonymous memory: start, all idle, most, MiB | %.0f, %.0f, %.0f | |\n",
              result.start_mib, result.idle_mib, result.peak_mib);
  for (const std::string& error : result.first_errors) std::printf("error: %s\n", error.c_str());
}

std::string LoadAsJson(const LoadSettings& settings, const LoadResult& result) {
  const nlohmann::json json{{"workers", settings.workers},
                            {"pushing", settings.pushing},
                            {"seconds", settings.seconds},
                            {"mib", settings.mib},
                            {"cores", result.cores},
                            {"errors", result.errors},
                            {"idle_kib_per_worker", result.idle_kib},
                            {"heartbeats", result.heartbeats},
                            {"client_p50_ms", result.client_p50_ms},
                            {"client_p99_ms", result.client_p99_ms},
                            {"client_max_ms", result.client_max_ms},
                            {"server_p99_ms_at_most", result.server_p99_ms},
                            {"pushes", result.pushes},
                            {"postponed", result.postponed},
                            {"versions", result.versions},
                            {"start_mib", result.start_mib},
                            {"idle_mib", result.idle_mib},
                            {"peak_mib", result.peak_mib}};
  return json.dump(2);
}

}  // namespace atl
