#include "server/web/reads.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "atoll/v1/admin.pb.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "server/all_evaluations.h"
#include "server/rpc/encode.h"
#include "server/rpc/encode_admin.h"
#include "server/rpc/request_limits.h"
#include "server/web/json.h"

namespace atl {
namespace {

constexpr uint64_t kMostEvents = RunHistory::kEvents;
constexpr uint64_t kEventsAtOnce = 200;

/// A number in the query; InvalidArgument naming it. Above `most` is an error too.
absl::StatusOr<uint64_t> NumberIn(const WebRequest& request, const std::string& name, uint64_t otherwise,
                                  uint64_t most) {
  const auto it = request.query.find(name);
  if (it == request.query.end()) return otherwise;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(it->second, &number) || number > most) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: takes a number from 0 to %d", name, most));
  }
  return number;
}

/// Messages as the elements of a JSON array.
template <typename Views, typename Encode>
absl::StatusOr<std::string> ArrayOf(const Views& views, const Encode& encode) {
  std::string array = "[";
  for (const auto& view : views) {
    v1::RunEvent message;
    encode(view, &message);
    ATOLL_ASSIGN_OR_RETURN(const std::string text, ToJson(message));
    array += (array.size() > 1 ? "," : "") + text;
  }
  return array + "]";
}

}  // namespace

WebReply WebReads::Status(const WebRequest& request) {
  const auto history = NumberIn(request, "history", 0, kMaxStatusHistory);
  if (!history.ok()) return ErrorReply(history.status());
  v1::GetStatusReply reply;
  const absl::Status encoded = EncodeStatus(coordinator_->GetStatus(static_cast<uint32_t>(*history)), &reply);
  reply.set_unix_nanos(clock_->WallNow().time_since_epoch().count());
  return encoded.ok() ? MessageReply(reply) : ErrorReply(encoded);
}

WebReply WebReads::Workers(const WebRequest& request) {
  const auto all = NumberIn(request, "all", 0, 1);
  if (!all.ok()) return ErrorReply(all.status());
  v1::ListWorkersReply reply;
  for (const WorkerView& worker : coordinator_->ListWorkers(*all == 1)) {
    EncodeWorker(worker, reply.add_workers());
  }
  return MessageReply(reply);
}

WebReply WebReads::Metrics(const WebRequest&) {
  v1::GetMetricsReply reply;
  EncodeMetrics(admin().GetMetrics(), &reply);
  return MessageReply(reply);
}

WebReply WebReads::Rounds(const WebRequest& request) {
  const auto fragment = NumberIn(request, "fragment", 0, UINT32_MAX);
  if (!fragment.ok()) return ErrorReply(fragment.status());
  const auto limit = NumberIn(request, "limit", kDefaultListedRounds, kMaxListedRounds);
  if (!limit.ok()) return ErrorReply(limit.status());
  // Without `after`: the newest.
  uint64_t newest = 0;
  for (const FragmentStatusView& status : coordinator_->GetStatus(0).fragments) {
    if (status.id == FragmentId(static_cast<uint32_t>(*fragment))) newest = status.version.value();
  }
  const auto after = NumberIn(request, "after", newest - std::min(newest, *limit), UINT64_MAX);
  if (!after.ok()) return ErrorReply(after.status());
  const auto list = admin().ListRounds(FragmentId(static_cast<uint32_t>(*fragment)), Version(*after),
                                       static_cast<uint32_t>(*limit));
  if (!list.ok()) return ErrorReply(list.status());
  v1::ListRoundsReply reply;
  EncodeRounds(*list, &reply);
  return MessageReply(reply);
}

WebReply WebReads::Events(const WebRequest& request) {
  const auto after = NumberIn(request, "after", 0, UINT64_MAX);
  if (!after.ok()) return ErrorReply(after.status());
  const auto limit = NumberIn(request, "limit", kEventsAtOnce, kMostEvents);
  if (!limit.ok()) return ErrorReply(limit.status());
  const auto encode = [](const EventView& view, v1::RunEvent* message) { EncodeEvent(view, message); };
  const auto events = ArrayOf(history_->Events(*after, *limit), encode);
  return events.ok() ? WebReply{.body = "{\"events\":" + *events + "}"} : ErrorReply(events.status());
}

WebReply WebReads::Curve(const WebRequest&) {
  const StatusView status = coordinator_->GetStatus(kMaxStatusHistory);
  std::vector<EvaluationView> evaluations = AllEvaluations(status);
  if (status.first_evaluation &&
      (evaluations.empty() || evaluations.front().version != status.first_evaluation->version)) {
    evaluations.insert(evaluations.begin(), *status.first_evaluation);
  }
  const auto encode = [](const EventView& view, v1::RunEvent* message) { EncodeEvent(view, message); };
  const auto milestones = ArrayOf(history_->Milestones(), encode);
  if (!milestones.ok()) return ErrorReply(milestones.status());
  std::string body = history_->Curve(evaluations);
  body.insert(body.size() - 1, ",\"milestones\":" + *milestones);
  return {.body = std::move(body)};
}

WebReply WebReads::Traffic(const WebRequest&) {
  nlohmann::json body = {{"unixSeconds", nlohmann::json::array()},
                         {"pushBytes", nlohmann::json::array()},
                         {"pullBytes", nlohmann::json::array()}};
  for (const TrafficPoint& point : history_->Traffic()) {
    body["unixSeconds"].push_back(std::round(static_cast<double>(point.unix_ns) * 1e-6) * 1e-3);
    body["pushBytes"].push_back(point.push_bytes);
    body["pullBytes"].push_back(point.pull_bytes);
  }
  return {.body = body.dump()};
}

WebReply WebReads::Launched(const WebRequest&) {
  v1::LauncherStatus reply;
  EncodeLauncher(admin().Launched(), &reply);
  return MessageReply(reply);
}

WebReply WebReads::Checkpoints(const WebRequest&) {
  const auto found = admin().ListCheckpoints(/*check=*/false);
  if (!found.ok()) return ErrorReply(found.status());
  v1::ListCheckpointsReply reply;
  for (const CheckpointView& view : *found) EncodeCheckpoint(view, reply.add_checkpoints());
  return MessageReply(reply);
}

}  // namespace atl
