#ifndef ATOLL_SERVER_RPC_ENCODE_H_
#define ATOLL_SERVER_RPC_ENCODE_H_

#include "absl/status/status.h"
#include "atoll/v1/admin.pb.h"
#include "atoll/v1/coordinator.pb.h"
#include "server/coordinator.h"
#include "server/views.h"

// What only the coordinator has, as messages: its views and the answer to a seed. protos/wire converts the
// calls and replies.

namespace atl {

/// What stands before the payload of a pull: all of it, until a part is chosen.
PullReply ReplyOf(const PullResult& result);
void EncodeSeed(const SeedResult& result, v1::SeedReply* reply);
void EncodeEvent(const EventView& event, v1::RunEvent* message);

/// Internal when the recorded configuration is not a RunConfig.
absl::Status EncodeStatus(const StatusView& view, v1::GetStatusReply* reply);
void EncodeWorker(const WorkerView& view, v1::WorkerStatus* message);

// Shared by the above.
void EncodeEvaluation(const EvaluationView& evaluation, v1::EvaluationReport* message);
void EncodeRound(const RoundSummaryView& round, v1::RoundSummary* message);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ENCODE_H_
