#include <cstdio>
#include <optional>

#include "bench/exchange/measure.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

const char* StoreName(StoreKind store) {
  return store == StoreKind::kDisk ? "disk (durable)" : "memory (not durable)";
}

const ExchangeResult* Find(const ExchangeReport& report, const std::string& recipe, uint32_t workers,
                           StoreKind store) {
  for (const ExchangeResult& result : report.exchanges) {
    if (result.recipe.name == recipe && result.workers == workers && result.store == store) return &result;
  }
  return nullptr;
}

/// What is judged: each ratio of two medians of this run, with its goal.
struct Ratio {
  std::string what;
  double value = 0;
  double goal = 0;
};

std::vector<Ratio> RatiosOf(const ExchangeSettings& settings, const ExchangeReport& report) {
  std::vector<Ratio> ratios;
  const auto cpu = [](const ExchangeResult& result) { return result.coordinator_cpu + result.workers_cpu; };
  for (const uint32_t workers : settings.workers) {
    const std::string suffix = ", " + std::to_string(workers) + " workers";
    const ExchangeResult* const plain = Find(report, "fp32", workers, StoreKind::kMemory);
    for (const Recipe& recipe : settings.recipes) {
      const ExchangeResult* const memory = Find(report, recipe.name, workers, StoreKind::kMemory);
      const ExchangeResult* const checkpoint = Find(report, recipe.name, workers, StoreKind::kDisk);
      if (memory == nullptr || checkpoint == nullptr) continue;
      if (memory == plain) {
        ratios.push_back({"fp32 / bare gRPC" + suffix, plain->seconds / plain->bare_grpc_seconds, 1.25});
        ratios.push_back(
            {"fp32 / bare gRPC, processor time" + suffix, cpu(*plain) / plain->bare_grpc_cpu, 1.25});
      } else if (plain != nullptr) {
        const double goal = recipe.push == CodecKind::kBf16 ? 0.65 : 0.6;
        ratios.push_back({recipe.name + " / fp32" + suffix, memory->seconds / plain->seconds, goal});
      }
      ratios.push_back({recipe.name + " durable / not" + suffix, checkpoint->seconds / memory->seconds, 1.3});
    }
  }
  return ratios;
}

}  // namespace

void PrintReport(const ExchangeSettings& settings, const ExchangeReport& report) {
  std::printf("\n%llu MiB of float32, medians of %d rounds, seconds\n\n",
              static_cast<unsigned long long>(settings.mib), settings.rounds);
  std::printf(
      "| workers | push:pull | acknowledged in | exchange | of it push | bare gRPC | bare TCP | cpu "
      "coordinator | cpu workers | cpu bare gRPC | memory |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const ExchangeResult& result : report.exchanges) {
    std::printf("| %u | %s | %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %.0f MiB |\n",
                result.workers, result.recipe.name.c_str(), StoreName(result.store), result.seconds,
                result.push_seconds, result.bare_grpc_seconds, result.bare_tcp_seconds,
                result.coordinator_cpu, result.workers_cpu, result.bare_grpc_cpu,
                static_cast<double>(result.peak_memory) / (1 << 20));
  }
  for (const GlooResult& gloo : report.gloo) {
    std::printf("| %u | gloo all-reduce | | %.3f | | | | | | | |\n", gloo.workers, gloo.seconds);
  }
  std::printf("\n| ratio | measured | goal |\n|---|---|---|\n");
  for (const Ratio& ratio : RatiosOf(settings, report)) {
    std::printf("| %s | %.2f | %.2f |\n", ratio.what.c_str(), ratio.value, ratio.goal);
  }
  std::printf(
      "\n| push:pull | up, bits a parameter | over the codec | down | over the codec "
      "|\n|---|---|---|---|---|\n");
  for (const BytesResult& bytes : report.bytes) {
    std::printf("| %s | %.4f | %+.2f %% | %.4f | %+.2f %% |\n", bytes.recipe.name.c_str(), 8 * bytes.up,
                100 * (bytes.up / bytes.up_payload - 1), 8 * bytes.down,
                100 * (bytes.down / bytes.down_payload - 1));
  }
}

std::string ReportAsJson(const ExchangeSettings& settings, const ExchangeReport& report) {
  nlohmann::json json{{"mib", settings.mib}, {"rounds", settings.rounds}};
  for (const ExchangeResult& result : report.exchanges) {
    json["exchanges"].push_back({{"workers", result.workers},
                                 {"recipe", result.recipe.name},
                                 {"durable", result.store == StoreKind::kDisk},
                                 {"seconds", result.seconds},
                                 {"push_seconds", result.push_seconds},
                                 {"bare_grpc_seconds", result.bare_grpc_seconds},
                                 {"bare_tcp_seconds", result.bare_tcp_seconds},
                                 {"coordinator_cpu_seconds", result.coordinator_cpu},
                                 {"workers_cpu_seconds", result.workers_cpu},
                                 {"bare_grpc_cpu_seconds", result.bare_grpc_cpu},
                                 {"coordinator_peak_bytes", result.peak_memory}});
  }
  for (const BytesResult& bytes : report.bytes) {
    json["bytes_per_parameter"].push_back({{"recipe", bytes.recipe.name},
                                           {"up", bytes.up},
                                           {"down", bytes.down},
                                           {"up_codec", bytes.up_payload},
                                           {"down_codec", bytes.down_payload}});
  }
  for (const GlooResult& gloo : report.gloo) {
    json["gloo"].push_back({{"workers", gloo.workers}, {"seconds", gloo.seconds}});
  }
  for (const Ratio& ratio : RatiosOf(settings, report)) {
    json["ratios"].push_back({{"what", ratio.what}, {"value", ratio.value}, {"goal", ratio.goal}});
  }
  return json.dump(2);
}

}  // namespace atl
