#ifndef ATOLL_PROTOS_WIRE_HEARTBEAT_H_
#define ATOLL_PROTOS_WIRE_HEARTBEAT_H_

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "core/protocol/heartbeat.h"
#include "core/protocol/member_ref.h"

namespace atl {

v1::Progress ProgressToProto(const ProgressReport& progress);
/// What a worker says of itself is for people and plots: an absurd figure counts as not known.
ProgressReport ProgressFromProto(const v1::Progress& progress);

/// Only values that the protocol has leave this process.
v1::Command WorkerCommandToProto(WorkerCommand command);
/// kNone for a command of a newer version.
WorkerCommand WorkerCommandFromProto(v1::Command command);

v1::TaskScore TaskScoreToProto(const TaskScore& score);
v1::EvaluationReport EvaluationReportToProto(const EvaluationReport& report);
EvaluationReport EvaluationReportFromProto(const v1::EvaluationReport& report);

v1::HeartbeatRequest HeartbeatCallToProto(const MemberRef& member, const HeartbeatCall& call);
/// InvalidArgument naming the field for lists and texts beyond their bounds. The caller is not read.
absl::StatusOr<HeartbeatCall> HeartbeatCallFromProto(const v1::HeartbeatRequest& request);

v1::HeartbeatReply HeartbeatReplyToProto(const HeartbeatReply& reply);
HeartbeatReply HeartbeatReplyFromProto(const v1::HeartbeatReply& message);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_HEARTBEAT_H_
