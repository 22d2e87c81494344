#include "server/rpc/port_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/memory_limit.h"
#include "common/status.h"

namespace atl {
namespace {

// Operators and tools are few, and their messages small.
constexpr uint64_t kAdminPart = 4;  // one of so many
constexpr uint64_t kLeastConnections = 16;

ConnectionLimits Share(const MemoryBounds& bounds, uint64_t part, uint64_t parts, size_t connections) {
  const auto of = [part, parts](uint64_t amount) { return amount / parts * part; };
  ConnectionLimits limits;
  limits.total = std::clamp<uint64_t>(of(bounds.connections), kLeastConnections, connections);
  limits.per_address = limits.total - limits.total / 2;
  limits.all_silent_bytes = of(bounds.silent_bytes);
  limits.all_held_bytes = of(bounds.held_bytes);
  limits.all_open_streams = of(bounds.open_streams);
  // Defaults are what one connection may have where memory is no matter.
  limits.silent_bytes = std::min(limits.silent_bytes, limits.all_silent_bytes / 2);
  limits.held_bytes = std::min(limits.held_bytes, limits.all_held_bytes);
  limits.open_streams = std::min(limits.open_streams, limits.all_open_streams / 2);
  return limits;
}

/// An external model of unknown size counts as half of the memory: the ports are bounded before a worker
/// brings it. After a restart its size is known.
RunOptions AssumeSize(RunOptions run, uint64_t parameters, uint64_t limit, const Logger& log) {
  if (run.model.external() != nullptr && parameters > 0) run.model.external()->parameters = parameters;
  if (run.model.size_known()) return run;
  constexpr uint64_t kBytesPerParameter = 24;  // with Nesterov and pull_delta
  run.model.external()->parameters = std::max<uint64_t>(limit / 2 / kBytesPerParameter, 1);
  log.Info(
      "the model is external and not known yet; clients' memory is bounded as if the model took half of the "
      "limit. Set model.external.parameters to bound it by the model's size");
  return run;
}

}  // namespace

absl::StatusOr<MemoryBounds> FindMemoryBounds(std::optional<uint64_t> limit_mib, const RunOptions& run,
                                              uint64_t parameters, const Logger& log) {
  const MemoryLimit limit =
      limit_mib ? MemoryLimit{.bytes = *limit_mib << 20, .source = "--memory-limit-mib"} : ReadMemoryLimit();
  ATOLL_ASSIGN_OR_RETURN(const CoordinatorMemory memory,
                         PlanCoordinatorMemory(AssumeSize(run, parameters, limit.bytes, log)));
  const MemoryBounds bounds = BoundsWithin(limit.bytes, memory);
  log.Info("memory", {{"limit", HumanBytes(bounds.limit)},
                      {"from", limit.source},
                      {"run", HumanBytes(bounds.run)},
                      {"strangers", HumanBytes(bounds.strangers)},
                      {"incomplete_messages", HumanBytes(bounds.silent_bytes)},
                      {"connections", bounds.connections},
                      {"streams", bounds.open_streams}});
  if (!bounds.fits()) {
    log.Warning(
        absl::StrFormat("the memory limit of %s is less than this run needs: %s at its peak, and %s for "
                        "clients that misbehave; "
                        "the system may end the coordinator. Give it %s (atollctl plan)",
                        HumanBytes(bounds.limit), HumanBytes(bounds.run), HumanBytes(bounds.strangers),
                        HumanBytes(RecommendedMemoryLimit(memory))));
  }
  return bounds;
}

void LimitPorts(const MemoryBounds& bounds, size_t connections, RpcServerOptions& options) {
  options.connections = Share(bounds, kAdminPart - 1, kAdminPart, connections);
  options.admin_connections = Share(bounds, 1, kAdminPart, connections);
  options.buffer_bytes = bounds.buffers;
}

std::string WhyFewerConnections(size_t wanted, size_t connections, const RpcServerOptions& options) {
  const size_t data = options.connections.total;
  if (data >= wanted) return "";
  const bool files = connections <= data;
  return absl::StrFormat(
      "the limit of %s leaves fewer connections than --max-connections %d: %d to the data port, %d to the "
      "admin port; %s",
      files ? "open files" : "memory", wanted, data, options.admin_connections.total,
      files ? "raise it (ulimit -n)" : "give the coordinator more memory, or lower --max-connections");
}

}  // namespace atl
