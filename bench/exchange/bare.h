#ifndef ATOLL_BENCH_EXCHANGE_BARE_H_
#define ATOLL_BENCH_EXCHANGE_BARE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/exchange/cpu_time.h"
#include "bench/exchange/settings.h"
#include "tests/integration/process.h"

// What moving the bytes costs by itself: to another process and back, nothing checked, nothing kept.

namespace atl {

/// The other process: writes its two addresses to `port_file` and serves until it is killed.
absl::Status ServeBare(const std::string& port_file);

/// That process, and what is sent through it.
class BareStreams {
 public:
  static absl::StatusOr<std::unique_ptr<BareStreams>> Start(const ExchangeSettings& settings);
  ~BareStreams();

  /// Each worker sends `up`; when all of it is there, each gets `down` bytes. Seconds. gRPC: in messages of
  /// 1 MiB that refer to the sender's memory, received without a copy.
  absl::StatusOr<double> Grpc(uint32_t workers, std::span<const std::byte> up, uint64_t down) const;
  absl::StatusOr<double> Tcp(uint32_t workers, std::span<const std::byte> up, uint64_t down) const;

  /// Processor seconds of the other process so far.
  double cpu_seconds() const { return CpuSeconds(process_->pid()); }

 private:
  BareStreams() = default;

  std::string folder_;
  std::string grpc_address_;
  std::string tcp_address_;
  std::unique_ptr<Process> process_;
};

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_BARE_H_
