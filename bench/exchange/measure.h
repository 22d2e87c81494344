#ifndef ATOLL_BENCH_EXCHANGE_MEASURE_H_
#define ATOLL_BENCH_EXCHANGE_MEASURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/exchange/settings.h"

namespace atl {

/// Medians over the rounds of one recipe with so many workers.
struct ExchangeResult {
  Recipe recipe;
  uint32_t workers = 0;
  StoreKind store = StoreKind::kDisk;
  double seconds = 0;
  double push_seconds = 0;       // until the slowest push was acknowledged
  double bare_grpc_seconds = 0;  // the same bytes
  double bare_tcp_seconds = 0;
  // Processor seconds from the first push to the last pull: of the coordinator (whatever it does meanwhile),
  // of the workers, and of both sides of the bare gRPC stream.
  double coordinator_cpu = 0;
  double workers_cpu = 0;
  double bare_grpc_cpu = 0;
  uint64_t peak_memory = 0;  // of the coordinator
};

/// What one worker's round takes on the wire.
struct BytesResult {
  Recipe recipe;
  uint64_t elements = 0;
  double up = 0;  // bytes a parameter, as measured
  double down = 0;
  double up_payload = 0;  // by the codec's size alone
  double down_payload = 0;
};

struct GlooResult {
  uint32_t workers = 0;
  double seconds = 0;
};

struct ExchangeReport {
  std::vector<ExchangeResult> exchanges;
  std::vector<BytesResult> bytes;
  std::vector<GlooResult> gloo;
};

absl::StatusOr<ExchangeReport> MeasureExchange(const ExchangeSettings& settings);

void PrintReport(const ExchangeSettings& settings, const ExchangeReport& report);
std::string ReportAsJson(const ExchangeSettings& settings, const ExchangeReport& report);

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_MEASURE_H_
