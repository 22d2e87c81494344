#include "protos/wire/run_state.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/field_check.h"

namespace atl {

v1::WorkerRef MemberRefToProto(const MemberRef& member) {
  v1::WorkerRef ref;
  ref.set_run_id(member.run_id);
  ref.set_epoch(member.epoch.value());
  ref.set_worker(member.worker);
  ref.set_incarnation(member.incarnation.value());
  return ref;
}

absl::StatusOr<MemberRef> MemberRefFromProto(const v1::WorkerRef& ref) {
  if (ref.worker().empty()) return BadField("worker.worker", "is empty; a call after Join names its worker");
  if (ref.worker().size() > kMaxWorkerName) {
    return BadField("worker.worker", absl::StrCat("is longer than ", kMaxWorkerName, " bytes"));
  }
  return MemberRef{.run_id = ref.run_id(),
                   .epoch = Epoch(ref.epoch()),
                   .worker = ref.worker(),
                   .incarnation = Incarnation(ref.incarnation())};
}

// The core's states have the numbers of the protobuf ones.
static_assert(static_cast<int>(RunState::kStarting) == v1::RUN_STATE_STARTING &&
              static_cast<int>(RunState::kTraining) == v1::RUN_STATE_TRAINING &&
              static_cast<int>(RunState::kDegraded) == v1::RUN_STATE_DEGRADED &&
              static_cast<int>(RunState::kCritical) == v1::RUN_STATE_CRITICAL &&
              static_cast<int>(RunState::kFinished) == v1::RUN_STATE_FINISHED &&
              static_cast<int>(RunState::kPaused) == v1::RUN_STATE_PAUSED &&
              static_cast<int>(RunState::kStopped) == v1::RUN_STATE_STOPPED);

v1::RunState RunStateToProto(RunState state) { return static_cast<v1::RunState>(state); }

RunState RunStateFromProto(v1::RunState state) {
  return v1::RunState_IsValid(state) ? static_cast<RunState>(state) : RunState::kUnknown;
}

void FragmentHeadsToProto(const std::vector<FragmentHead>& heads,
                          google::protobuf::RepeatedPtrField<v1::FragmentInfo>* out) {
  for (const FragmentHead& head : heads) {
    v1::FragmentInfo* info = out->Add();
    info->set_id(head.id.value());
    info->set_version(head.version.value());
    info->set_elements(head.elements);
    info->set_endpoint(head.endpoint);
  }
}

std::vector<FragmentHead> FragmentHeadsFromProto(
    const google::protobuf::RepeatedPtrField<v1::FragmentInfo>& infos) {
  std::vector<FragmentHead> heads;
  for (const v1::FragmentInfo& info : infos) {
    heads.push_back({.id = FragmentId(info.id()),
                     .version = Version(info.version()),
                     .elements = info.elements(),
                     .endpoint = info.endpoint()});
  }
  return heads;
}

v1::DataAssignment DataPartToProto(const DataPart& part) {
  v1::DataAssignment message;
  message.set_partition(part.partition);
  message.set_partitions(part.partitions);
  message.set_samples_consumed(part.samples_consumed);
  return message;
}

absl::StatusOr<DataPart> DataPartFromProto(const v1::DataAssignment& data) {
  if (data.partition() >= data.partitions()) {
    return BadReply(absl::StrFormat("data partition %d of %d", data.partition(), data.partitions()));
  }
  return DataPart{.partition = data.partition(),
                  .partitions = data.partitions(),
                  .samples_consumed = data.samples_consumed()};
}

v1::RoundPlan RoundPlanToProto(const RoundPlan& plan) {
  v1::RoundPlan message;
  message.set_inner_steps(plan.inner_steps);
  message.set_active_workers(plan.active_workers);
  message.set_committed_tokens(plan.committed_tokens);
  message.set_total_tokens(plan.total_tokens);
  message.set_evaluate(plan.evaluate);
  message.set_deadline_s(ToSeconds(plan.deadline));
  message.set_config_version(plan.config_version);
  message.set_run_tasks(plan.run_tasks);
  if (plan.data.has_value()) *message.mutable_data() = DataPartToProto(*plan.data);
  return message;
}

absl::StatusOr<RoundPlan> RoundPlanFromProto(const v1::RoundPlan& plan) {
  RoundPlan planned{.inner_steps = plan.inner_steps(),
                    .active_workers = plan.active_workers(),
                    .committed_tokens = plan.committed_tokens(),
                    .total_tokens = plan.total_tokens(),
                    .evaluate = plan.evaluate(),
                    .deadline = BoundedSeconds(plan.deadline_s()),
                    .data = std::nullopt,
                    .config_version = plan.config_version(),
                    .run_tasks = plan.run_tasks()};
  if (plan.has_data()) {
    ATOLL_ASSIGN_OR_RETURN(planned.data, DataPartFromProto(plan.data()));
  }
  return planned;
}

}  // namespace atl
