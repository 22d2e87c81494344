#ifndef ATOLL_SERVER_RPC_ENCODE_H_
#define ATOLL_SERVER_RPC_ENCODE_H_

#include "absl/status/status.h"
#include "atoll/v1/admin.pb.h"
#include "atoll/v1/coordinator.pb.h"
#include "server/coordinator.h"
#include "server/views.h"

// The coordinator's answers and views as messages.

namespace atl {

/// Internal when the recorded configuration is not a RunConfig.
absl::Status EncodeJoin(const JoinResult& result, v1::JoinReply* reply);
void EncodeHeartbeat(const HeartbeatResult& result, v1::HeartbeatReply* reply);
void EncodeSeed(const SeedResult& result, v1::SeedReply* reply);
void EncodePush(const PushResult& result, v1::PushReply* reply);
void EncodePushStatus(const PushStatusResult& result, v1::GetPushStatusReply* reply);
void EncodeConfirmations(const ConfirmationPage& page, v1::ConfirmationPage* reply);
void EncodePullHeader(const PullResult& result, v1::PullHeader* header);
void EncodeEvent(const EventView& event, v1::RunEvent* message);

absl::Status EncodeStatus(const StatusView& view, v1::GetStatusReply* reply);
void EncodeWorker(const WorkerView& view, v1::WorkerStatus* message);

// Shared by the above.
/// Only values that the protocol has leave this process.
v1::Command EncodeCommand(CommandView command);
void EncodeFragments(const std::vector<FragmentView>& fragments,
                     google::protobuf::RepeatedPtrField<v1::FragmentInfo>* out);
void EncodePartition(const PartitionView& partition, v1::DataAssignment* message);
void EncodeEvaluation(const EvaluationView& evaluation, v1::EvaluationReport* message);
void EncodeRound(const RoundSummaryView& round, v1::RoundSummary* message);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ENCODE_H_
