#ifndef ATOLL_PROTOS_WIRE_RUN_STATE_H_
#define ATOLL_PROTOS_WIRE_RUN_STATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "atoll/v1/types.pb.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/run_state.h"
#include "google/protobuf/repeated_field.h"

// Parts that several calls and replies share.

namespace atl {

v1::WorkerRef MemberRefToProto(const MemberRef& member);
/// InvalidArgument naming the field when the worker's name is empty or too long.
absl::StatusOr<MemberRef> MemberRefFromProto(const v1::WorkerRef& ref);

v1::RunState RunStateToProto(RunState state);
/// kUnknown for a state of a newer version.
RunState RunStateFromProto(v1::RunState state);

void FragmentHeadsToProto(const std::vector<FragmentHead>& heads,
                          google::protobuf::RepeatedPtrField<v1::FragmentInfo>* out);
std::vector<FragmentHead> FragmentHeadsFromProto(
    const google::protobuf::RepeatedPtrField<v1::FragmentInfo>& infos);

v1::DataAssignment DataPartToProto(const DataPart& part);
/// InvalidArgument for a partition outside their number.
absl::StatusOr<DataPart> DataPartFromProto(const v1::DataAssignment& data);

v1::RoundPlan RoundPlanToProto(const RoundPlan& plan);
/// As DataPartFromProto.
absl::StatusOr<RoundPlan> RoundPlanFromProto(const v1::RoundPlan& plan);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_RUN_STATE_H_
