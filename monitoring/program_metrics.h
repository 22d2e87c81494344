#ifndef ATOLL_MONITORING_PROGRAM_METRICS_H_
#define ATOLL_MONITORING_PROGRAM_METRICS_H_

#include <string_view>

#include "monitoring/metrics.h"

namespace atl {

/// atoll_build_info{program, version, revision} 1, and what every exporter says of its process under the
/// names that Prometheus's own clients give it (process_resident_memory_bytes, process_cpu_seconds_total,
/// ...; from /proc), read at each scrape. `registry` outlives its scrapes.
void AddProgramMetrics(MetricsRegistry* registry, std::string_view program);

}  // namespace atl

#endif  // ATOLL_MONITORING_PROGRAM_METRICS_H_
