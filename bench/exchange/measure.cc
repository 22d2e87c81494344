#include "bench/exchange/measure.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <sstream>
#include <thread>

#include "bench/exchange/bare.h"
#include "bench/exchange/crew.h"
#include "bench/exchange/island.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {
namespace {

void Compute(const ExchangeSettings& settings) {
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.compute_s));
}

/// The medians of what several rounds took, and of the processors' part in it.
struct Samples {
  std::vector<double> seconds;
  std::vector<double> server_cpu;
  std::vector<double> client_cpu;

  /// `run` returns its seconds; `server` says what the other process has used so far.
  absl::Status Take(const std::function<absl::StatusOr<double>()>& run,
                    const std::function<double()>& server) {
    const double server_before = server();
    const double client_before = CpuSeconds(::getpid());
    ATOLL_ASSIGN_OR_RETURN(const double took, run());
    server_cpu.push_back(server() - server_before);
    client_cpu.push_back(CpuSeconds(::getpid()) - client_before);
    seconds.push_back(took);
    return absl::OkStatus();
  }
};

uint64_t PayloadOf(CodecKind codec, uint64_t elements) { return CodecFor(codec).EncodedSize(elements); }

absl::StatusOr<ExchangeResult> MeasureOne(const ExchangeSettings& settings, const Recipe& recipe,
                                          uint32_t workers, StoreKind store, const BareStreams& bare) {
  ATOLL_ASSIGN_OR_RETURN(const auto island,
                         Island::Start(settings, recipe, workers, store, /*metered=*/false));
  const std::span<const std::byte> up = island->payload();
  const uint64_t down = PayloadOf(recipe.down(), island->elements());
  Samples whole;
  Samples grpc;
  std::vector<double> pushes;
  std::vector<double> tcp;
  for (int round = 0; round <= settings.rounds; ++round) {
    // In the first one memory is touched for the first time, and connections find their windows.
    if (round == 1) {
      whole = grpc = Samples();
      pushes.clear();
      tcp.clear();
    }
    Compute(settings);
    ATOLL_RETURN_IF_ERROR(whole.Take([&] { return island->Round(); }, [&] { return island->cpu_seconds(); }));
    pushes.push_back(island->push_s());
    Compute(settings);
    ATOLL_RETURN_IF_ERROR(
        grpc.Take([&] { return bare.Grpc(workers, up, down); }, [&] { return bare.cpu_seconds(); }));
    ATOLL_ASSIGN_OR_RETURN(tcp.emplace_back(), bare.Tcp(workers, up, down));
  }
  ExchangeResult result{.recipe = recipe, .workers = workers, .store = store};
  result.seconds = Median(whole.seconds);
  result.push_seconds = Median(pushes);
  result.bare_grpc_seconds = Median(grpc.seconds);
  result.bare_tcp_seconds = Median(tcp);
  result.coordinator_cpu = Median(whole.server_cpu);
  result.workers_cpu = Median(whole.client_cpu);
  result.bare_grpc_cpu = Median(grpc.server_cpu) + Median(grpc.client_cpu);
  ATOLL_ASSIGN_OR_RETURN(result.peak_memory, island->PeakMemory());
  return result;
}

absl::StatusOr<BytesResult> MeasureBytes(const ExchangeSettings& settings, const Recipe& recipe) {
  ATOLL_ASSIGN_OR_RETURN(const auto island,
                         Island::Start(settings, recipe, 1, StoreKind::kMemory, /*metered=*/true));
  constexpr int kRounds = 3;
  const Island::Traffic before = island->traffic();
  for (int round = 0; round < kRounds; ++round) ATOLL_RETURN_IF_ERROR(island->Round().status());
  const Island::Traffic after = island->traffic();
  const auto elements = static_cast<double>(island->elements());
  return BytesResult{
      .recipe = recipe,
      .elements = island->elements(),
      .up = static_cast<double>(after.up - before.up) / kRounds / elements,
      .down = static_cast<double>(after.down - before.down) / kRounds / elements,
      .up_payload = static_cast<double>(PayloadOf(recipe.push, island->elements())) / elements,
      .down_payload = static_cast<double>(PayloadOf(recipe.down(), island->elements())) / elements};
}

absl::StatusOr<double> Gloo(const ExchangeSettings& settings, uint32_t workers) {
  const Finished run = RunToEnd({settings.python, settings.gloo_script, std::to_string(workers),
                                 std::to_string(settings.mib), std::to_string(settings.rounds)},
                                Seconds(300));
  if (run.exit_code != 0) return absl::UnavailableError("gloo did not run: " + run.output);
  std::vector<double> rounds;
  std::istringstream lines(run.output);
  for (double seconds = 0; lines >> seconds;) rounds.push_back(seconds);
  return Median(rounds);
}

bool HasTorch(const ExchangeSettings& settings) {
  return !settings.python.empty() &&
         RunToEnd({settings.python, "-c", "import torch.distributed"}, Seconds(60)).exit_code == 0;
}

}  // namespace

absl::StatusOr<ExchangeReport> MeasureExchange(const ExchangeSettings& settings) {
  ATOLL_ASSIGN_OR_RETURN(const auto bare, BareStreams::Start(settings));
  ExchangeReport report;
  for (const uint32_t workers : settings.workers) {
    for (const Recipe& recipe : settings.recipes) {
      for (const StoreKind store : settings.stores) {
        ATOLL_ASSIGN_OR_RETURN(const ExchangeResult result,
                               MeasureOne(settings, recipe, workers, store, *bare));
        std::fprintf(
            stderr,
            "%u workers, %s, %s: %.3f s (push %.3f; cpu %.3f + %.3f), bare gRPC %.3f (cpu %.3f), TCP %.3f\n",
            workers, recipe.name.c_str(), store == StoreKind::kDisk ? "disk" : "memory", result.seconds,
            result.push_seconds, result.coordinator_cpu, result.workers_cpu, result.bare_grpc_seconds,
            result.bare_grpc_cpu, result.bare_tcp_seconds);
        report.exchanges.push_back(result);
      }
    }
  }
  for (const Recipe& recipe : settings.recipes) {
    ATOLL_ASSIGN_OR_RETURN(report.bytes.emplace_back(), MeasureBytes(settings, recipe));
  }
  if (!HasTorch(settings)) return report;
  for (const uint32_t workers : settings.workers) {
    if (workers < 2) continue;
    ATOLL_ASSIGN_OR_RETURN(const double seconds, Gloo(settings, workers));
    report.gloo.push_back({workers, seconds});
  }
  return report;
}

}  // namespace atl
