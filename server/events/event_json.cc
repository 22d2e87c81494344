#include "server/events/event_json.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/json_integer.h"

namespace atl {
namespace {

using nlohmann::json;

json EncodeRound(const RoundSummaryView& round) {
  return {{"fragment", round.fragment.value()},
          {"version", round.version.value()},
          {"contributions", round.contributions},
          {"train_loss", round.train_loss},
          {"tokens", round.tokens},
          {"committed_tokens", round.committed_tokens},
          {"open_seconds", round.open_seconds},
          {"commit_seconds", round.commit_seconds},
          {"payload_bytes", round.payload_bytes},
          {"close_reason", round.close_reason},
          {"closed_unix_ns", round.closed_unix_ns},
          {"epsilon", round.epsilon}};
}

RoundSummaryView DecodeRound(const json& object) {
  RoundSummaryView round;
  round.fragment = FragmentId(JsonInteger<uint32_t>(object, "fragment", 0));
  round.version = Version(JsonInteger<uint64_t>(object, "version", 0));
  round.contributions = JsonInteger<uint32_t>(object, "contributions", 0);
  round.train_loss = object.value("train_loss", 0.0);
  round.tokens = JsonInteger<uint64_t>(object, "tokens", 0);
  round.committed_tokens = JsonInteger<uint64_t>(object, "committed_tokens", 0);
  round.open_seconds = object.value("open_seconds", 0.0);
  round.commit_seconds = object.value("commit_seconds", 0.0);
  round.payload_bytes = JsonInteger<uint64_t>(object, "payload_bytes", 0);
  round.close_reason = object.value("close_reason", std::string());
  round.closed_unix_ns = JsonInteger<int64_t>(object, "closed_unix_ns", 0);
  round.epsilon = object.value("epsilon", 0.0);
  return round;
}

json EncodeEvaluation(const EvaluationView& evaluation) {
  json object = {
      {"version", evaluation.version.value()}, {"loss", evaluation.loss}, {"tokens", evaluation.tokens}};
  for (const TaskScore& score : evaluation.tasks) {
    object["tasks"].push_back({{"task", score.task},
                               {"metric", score.metric},
                               {"value", score.value},
                               {"standard_error", score.standard_error},
                               {"questions", score.questions}});
  }
  return object;
}

EvaluationView DecodeEvaluation(const json& object) {
  EvaluationView evaluation{.version = Version(JsonInteger<uint64_t>(object, "version", 0)),
                            .loss = object.value("loss", 0.0),
                            .tokens = JsonInteger<uint64_t>(object, "tokens", 0)};
  for (const json& score : object.value("tasks", json::array())) {
    evaluation.tasks.push_back({.task = score.value("task", std::string()),
                                .metric = score.value("metric", std::string()),
                                .value = score.value("value", 0.0),
                                .standard_error = score.value("standard_error", 0.0),
                                .questions = JsonInteger<uint64_t>(score, "questions", 0)});
  }
  return evaluation;
}

EventView DecodeObject(const json& object) {
  EventView event;
  event.sequence = JsonInteger<uint64_t>(object.at("sequence"));
  event.unix_ns = JsonInteger<int64_t>(object, "unix_ns", 0);
  event.kind = static_cast<EventKind>(JsonInteger<uint32_t>(object, "kind", 0));
  event.message = object.value("message", std::string());
  event.worker = object.value("worker", std::string());
  event.trace_id = object.value("trace_id", std::string());
  event.fragment = FragmentId(JsonInteger<uint32_t>(object, "fragment", 0));
  event.version = Version(JsonInteger<uint64_t>(object, "version", 0));
  if (const auto it = object.find("round"); it != object.end()) event.round = DecodeRound(*it);
  if (const auto it = object.find("evaluation"); it != object.end()) {
    event.evaluation = DecodeEvaluation(*it);
  }
  return event;
}

}  // namespace

std::string EncodeEvent(const EventView& event) {
  json object = {{"sequence", event.sequence},
                 {"unix_ns", event.unix_ns},
                 {"kind", static_cast<unsigned>(event.kind)},
                 {"message", event.message}};
  if (!event.worker.empty()) object["worker"] = event.worker;
  if (!event.trace_id.empty()) object["trace_id"] = event.trace_id;
  if (event.fragment != FragmentId()) object["fragment"] = event.fragment.value();
  if (event.version != Version()) object["version"] = event.version.value();
  if (event.round) object["round"] = EncodeRound(*event.round);
  if (event.evaluation) object["evaluation"] = EncodeEvaluation(*event.evaluation);
  // A worker's words end up in messages; what is not UTF-8 in them is replaced, not thrown about.
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<EventView> DecodeEvent(std::string_view bytes) {
  const json object = json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded() || !object.is_object()) {
    return absl::DataLossError("an event in the store is not a JSON object; it is skipped");
  }
  try {
    return DecodeObject(object);
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrFormat("an event in the store cannot be read: %s", error.what()));
  }
}

}  // namespace atl
