#ifndef ATOLL_MONITORING_PROGRAM_METRICS_H_
#define ATOLL_MONITORING_PROGRAM_METRICS_H_

#include <string_view>

#include "monitoring/metrics.h"

namespace atl {

/// Adds atoll_build_info{program, version, revision} 1 and the standard process metrics of Prometheus clients
/// (process_resident_memory_bytes, process_cpu_seconds_total, ...), read from /proc at each scrape.
/// `registry` outlives its scrapes.
void AddProgramMetrics(MetricsRegistry* registry, std::string_view program);

}  // namespace atl

#endif  // ATOLL_MONITORING_PROGRAM_METRICS_H_
