#include "client/engine/caller_replica.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

absl::Status NoMemory(uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("cannot share %d bytes of memory with the caller: %s", bytes, std::strerror(errno)));
}

/// NaN: the caller does not know it.
double KnownOr0(double value) { return std::isnan(value) ? 0 : value; }

std::string Because(const ipc::Answer& answer) {
  return answer.message.empty() ? std::string("the caller did not say why") : answer.message;
}

}  // namespace

absl::Status CallerReplica::Fail(const absl::Status& why) {
  parts_.failed(why);
  return absl::CancelledError(std::string(why.message()));
}

absl::StatusOr<ipc::Answer> CallerReplica::Ask(ipc::Event event, const char* name,
                                               std::initializer_list<atl_outcome> also) {
  ATOLL_ASSIGN_OR_RETURN(ipc::Answer answer, parts_.link->Ask(std::move(event)));
  if (answer.outcome == ATL_DONE || std::ranges::count(also, answer.outcome) > 0) return answer;
  if (answer.outcome == ATL_FAILED)
    return Fail(
        absl::AbortedError(absl::StrCat("the training loop failed at ", name, ": ", Because(answer))));
  return Fail(absl::InvalidArgumentError(absl::StrFormat(
      "%s was answered with outcome %d, which that event does not have", name, answer.outcome)));
}

absl::Status CallerReplica::Introduce(const std::string& run_json) {
  return Ask({.kind = ATL_EVENT_JOINED, .text = run_json}, "JOINED").status();
}

absl::StatusOr<ipc::Event> CallerReplica::FragmentEvent(atl_event_kind kind, const FragmentLayout& fragment) {
  const uint64_t bytes = fragment.elements * sizeof(float);
  if (!parts_.values->Grow(bytes)) return Fail(NoMemory(bytes));
  ipc::Event event{.kind = kind};
  for (const TensorSlot& slot : fragment.slots) {
    event.pieces.push_back({.tensor = slot.tensor, .offset = slot.offset, .elements = slot.elements});
  }
  return event;
}

absl::Status CallerReplica::ReadFragment(const FragmentLayout& fragment, std::span<float> out) {
  ATOLL_ASSIGN_OR_RETURN(ipc::Event event, FragmentEvent(ATL_EVENT_READ, fragment));
  ATOLL_RETURN_IF_ERROR(Ask(std::move(event), "READ").status());
  std::ranges::fill(out, 0.0F);
  const std::span<const float> shared = parts_.values->floats();
  for (const TensorSlot& slot : fragment.slots) {
    std::ranges::copy(shared.subspan(slot.offset, slot.elements),
                      out.begin() + static_cast<ptrdiff_t>(slot.offset));
  }
  return absl::OkStatus();
}

absl::Status CallerReplica::WriteFragment(const FragmentLayout& fragment, std::span<const float> values) {
  ATOLL_ASSIGN_OR_RETURN(ipc::Event event, FragmentEvent(ATL_EVENT_WRITE, fragment));
  std::ranges::copy(values, parts_.values->floats().begin());
  return Ask(std::move(event), "WRITE").status();
}

absl::StatusOr<InnerStepResult> CallerReplica::InnerStep(double learning_rate) {
  const ProgressReport progress = parts_.progress();
  ATOLL_ASSIGN_OR_RETURN(const ipc::Answer answer, Ask({.kind = ATL_EVENT_STEP,
                                                        .learning_rate = learning_rate,
                                                        .version = progress.base.value(),
                                                        .local_step = progress.step},
                                                       "STEP", {ATL_NOT_FINITE, ATL_DECLINED}));
  if (answer.outcome == ATL_DECLINED) return NoMoreSteps();
  // A step that was not taken may leave the place in the data as it was, and then needs not say it.
  if (answer.outcome == ATL_DONE || answer.samples > samples_) samples_ = answer.samples;
  if (answer.outcome == ATL_NOT_FINITE || std::isinf(answer.loss) || std::isinf(answer.gradient_norm)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the step after %d samples is not finite (loss %g, gradient norm %g): %s", samples_,
                        answer.loss, answer.gradient_norm, Because(answer)));
  }
  if (answer.tokens == 0)
    return Fail(absl::InvalidArgumentError("STEP was answered with 0 tokens; a step uses at least one"));
  const double data = std::isfinite(answer.data_seconds) ? std::max(answer.data_seconds, 0.0) : 0;
  return InnerStepResult{.loss = KnownOr0(answer.loss),
                         .gradient_norm = KnownOr0(answer.gradient_norm),
                         .tokens = answer.tokens,
                         .data = Seconds(data)};
}

absl::Status CallerReplica::SetPartition(uint32_t partition, uint32_t partitions) {
  ATOLL_RETURN_IF_ERROR(
      Ask({.kind = ATL_EVENT_PARTITION, .partition = partition, .partitions = partitions}, "PARTITION")
          .status());
  partition_ = partition;
  partitions_ = partitions;
  samples_ = 0;
  return absl::OkStatus();
}

absl::Status CallerReplica::Seek(uint64_t samples_consumed) {
  ATOLL_RETURN_IF_ERROR(Ask({.kind = ATL_EVENT_SEEK, .samples = samples_consumed}, "SEEK").status());
  samples_ = samples_consumed;
  return absl::OkStatus();
}

absl::Status CallerReplica::SaveState(ReplicaState& state) {
  ATOLL_ASSIGN_OR_RETURN(const ipc::Answer answer, Ask({.kind = ATL_EVENT_SAVE}, "SAVE"));
  if (!parts_.state->Map(answer.state_bytes)) {
    return Fail(absl::InvalidArgumentError(
        absl::StrFormat("SAVE announces %d bytes of state, which are not there", answer.state_bytes)));
  }
  const auto bytes = parts_.state->bytes().first(answer.state_bytes);
  state.kind = answer.state_kind;
  state.optimizer_steps = answer.optimizer_steps;
  state.partition = partition_;
  state.partitions = partitions_;
  state.samples_consumed = samples_;
  state.opaque.assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status CallerReplica::LoadState(const ReplicaState& state) {
  if (!parts_.state->Grow(state.opaque.size())) return Fail(NoMemory(state.opaque.size()));
  std::ranges::copy(state.opaque, parts_.state->bytes().begin());
  ATOLL_ASSIGN_OR_RETURN(
      const ipc::Answer answer,
      Ask({.kind = ATL_EVENT_LOAD, .state_bytes = state.opaque.size()}, "LOAD", {ATL_FAILED}));
  if (answer.outcome == ATL_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the kept state is that of %s; this worker has %s: %s", state.kind,
                        answer.state_kind.empty() ? "another" : answer.state_kind, Because(answer)));
  }
  partition_ = state.partition;
  partitions_ = state.partitions;
  samples_ = state.samples_consumed;
  return absl::OkStatus();
}

absl::Status CallerReplica::NothingHeldOut(const ipc::Answer& answer) {
  if (!std::exchange(*parts_.said_nothing_held_out, true)) {
    parts_.log.Warning("this worker evaluates nothing, though the run asks it to; versions may lack a loss",
                       {{"because", Because(answer)}});
  }
  return absl::UnimplementedError("the caller has no held-out data");
}

absl::StatusOr<EvaluationResult> CallerReplica::Evaluate(uint32_t max_batches) {
  ATOLL_ASSIGN_OR_RETURN(
      const ipc::Answer answer,
      Ask({.kind = ATL_EVENT_EVALUATE, .version = parts_.progress().base.value(), .max_batches = max_batches},
          "EVALUATE", {ATL_NOT_FINITE, ATL_DECLINED}));
  if (answer.outcome == ATL_DECLINED) return NothingHeldOut(answer);
  if (answer.outcome == ATL_NOT_FINITE || !std::isfinite(answer.loss))
    return absl::OutOfRangeError(
        absl::StrCat("the loss on held-out samples is not finite: ", Because(answer)));
  if (answer.tokens == 0)
    return Fail(
        absl::InvalidArgumentError("EVALUATE was answered with 0 tokens; an evaluation uses at least one"));
  return EvaluationResult{.loss = answer.loss, .tokens = answer.tokens};
}

}  // namespace atl
