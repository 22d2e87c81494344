#ifndef ATOLL_SERVER_RPC_PORT_LIMITS_H_
#define ATOLL_SERVER_RPC_PORT_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/log.h"
#include "core/memory_bounds.h"
#include "core/run_options.h"
#include "server/rpc/server.h"

namespace atl {

/// The memory limit of this process (--memory-limit-mib, else that of its cgroup, else the machine's), and
/// what clients may take of it beside the run. Says so in the log, and warns when the run does not fit.
/// `parameters`: of the seeded run, 0 before; they matter for an external model only. Errors are those of the
/// configuration.
absl::StatusOr<MemoryBounds> FindMemoryBounds(std::optional<uint64_t> limit_mib, const RunOptions& run,
                                              uint64_t parameters, const Logger& log);

/// Divides the bounds between the ports. `connections`: of each port at most (--max-connections, open files).
void LimitPorts(const MemoryBounds& bounds, size_t connections, RpcServerOptions& options);

/// Why LimitPorts gave the data port fewer than `wanted` connections (--max-connections), and the numbers in
/// force; empty: it did not. `connections`: as LimitPorts had it. Pure.
std::string WhyFewerConnections(size_t wanted, size_t connections, const RpcServerOptions& options);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_PORT_LIMITS_H_
