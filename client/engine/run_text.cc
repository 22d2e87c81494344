#include "client/engine/run_text.h"

#include <nlohmann/json.hpp>

#include "client/rpc/config_json.h"
#include "core/time_use.h"

namespace atl {
namespace {

const char* PhaseText(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::kJoining:
      return "joining";
    case WorkerPhase::kSeeding:
      return "seeding";
    case WorkerPhase::kPulling:
      return "pulling";
    case WorkerPhase::kEvaluating:
      return "evaluating";
    case WorkerPhase::kTraining:
      return "training";
    case WorkerPhase::kPushing:
      return "pushing";
    case WorkerPhase::kWaiting:
      return "waiting";
    case WorkerPhase::kLeaving:
      return "leaving";
    case WorkerPhase::kUnknown:
      break;
  }
  return "starting";
}

/// Bytes that are no UTF-8 (a name from another machine) must not end the program.
std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string RunJson(const JoinedRun& run, const Manifest& manifest) {
  nlohmann::json json = {{"run", run.run.name},
                         {"run_id", run.member.run_id},
                         {"worker", run.member.worker},
                         {"epoch", run.member.epoch.value()},
                         {"config_version", run.config_version},
                         {"committed_tokens", run.committed_tokens},
                         {"total_tokens", run.total_tokens},
                         {"config", nlohmann::json::parse(ConfigJson(run.config_bytes), nullptr, false)},
                         {"tensors", nlohmann::json::array()}};
  for (const TensorSpec& tensor : manifest.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"shape", tensor.shape},
                               {"embedding", tensor.embedding},
                               {"averaged", tensor.averaged}});
  }
  if (run.data.has_value()) {
    json["partition"] = run.data->partition;
    json["partitions"] = run.data->partitions;
  }
  return Dump(json);
}

std::string StatusJson(const ProgressReport& progress, const WorkerTotals& totals,
                       const std::string& last_end) {
  nlohmann::json json = {{"phase", PhaseText(progress.phase)},
                         {"waiting_for", progress.waiting_for},
                         {"version", progress.base.value()},
                         {"local_step", progress.step},
                         {"local_steps", progress.steps},
                         {"step", totals.steps()},
                         {"loss", progress.loss},
                         {"gradient_norm", progress.gradient_norm},
                         {"learning_rate", progress.learning_rate},
                         {"tokens", totals.tokens()},
                         {"tokens_per_second", progress.tokens_per_second},
                         {"utilisation", UtilisationOf(progress.training)},
                         {"pushed_bytes", totals.pushed_bytes()},
                         {"pulled_bytes", totals.pulled_bytes()},
                         {"last_end", nullptr}};
  if (!last_end.empty()) json["last_end"] = last_end;
  return Dump(json);
}

}  // namespace atl
