#include "tests/client/sync/fake_coordinator.h"

#include <algorithm>

#include "client/sync/rejection.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/codec.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

absl::Status Rejection(absl::StatusCode code, RejectionReason reason) {
  return WithRejection(absl::Status(code, std::string(RejectionReasonName(reason))), reason);
}

}  // namespace

RunOptions SmallRun() {
  RunOptions run;
  run.name = "small";
  run.workers = 1;
  run.rounds = 1000;
  run.model.gpt().context = 8;
  run.inner.batch = 3;
  run.inner.steps = 4;
  run.inner.learning_rate = 0.1;
  run.inner.min_learning_rate_ratio = 1;
  run.evaluation_batches = 5;
  return run;
}

FakeCoordinator::FakeCoordinator(uint32_t fragments)
    : FakeCoordinator(FakeReplica::MakeManifest(), fragments) {}

FakeCoordinator::FakeCoordinator(Manifest manifest, uint32_t fragments)
    : run(SmallRun()),
      manifest_(std::move(manifest)),
      layout_(PlanFragments(manifest_, fragments).value()),
      held_(fragments) {
  for (const FragmentLayout& fragment : layout_) theta_.emplace_back(fragment.elements);
}

std::optional<FakeCoordinator::Fault> FakeCoordinator::NextFault(const std::string& method) {
  Fault fault;
  {
    const MutexLock lock(&mutex_);
    ++calls_[method];
    auto& queue = faults_[method];
    if (queue.empty()) return std::nullopt;
    fault = std::move(queue.front());
    queue.pop_front();
  }
  if (fault.before) fault.before();
  return fault;
}

absl::Status FakeCoordinator::CheckMember(const MemberRef& member) const {
  const MutexLock lock(&mutex_);
  if (member.epoch != epoch_) {
    return Rejection(absl::StatusCode::kFailedPrecondition, RejectionReason::kWrongEpoch);
  }
  if (member.incarnation.value() != incarnation_) {
    return Rejection(absl::StatusCode::kFailedPrecondition, RejectionReason::kSuperseded);
  }
  return absl::OkStatus();
}

void FakeCoordinator::SeedWith(float value) {
  seeded_ = true;
  for (auto& values : theta_) std::fill(values.begin(), values.end(), value);
}

ContentHash FakeCoordinator::PublishedHash() const { return HashOf(FragmentId(0)); }

ContentHash FakeCoordinator::HashOf(FragmentId fragment) const {
  const std::vector<float>& values = theta_[fragment.value()];
  std::vector<std::byte> payload(CodecFor(run.pull_codec).EncodedSize(values.size()));
  CodecFor(run.pull_codec).Encode(values, payload);
  const Hash128 hash = HashBytes(payload);
  return {.low = hash.low, .high = hash.high};
}

void FakeCoordinator::PublishWithout(float shift) {
  for (auto& values : theta_) {
    for (float& value : values) value += shift;
  }
  head_ = Next(head_);
}

void FakeCoordinator::GoBack(Version head, float value) {
  head_ = head;
  SeedWith(value);
  committed_.clear();
}

void FakeCoordinator::Restore() {
  const MutexLock lock(&mutex_);
  epoch_ = Epoch(epoch_.value() + 1);
  head_ = Next(head_);
}

absl::StatusOr<JoinedRun> FakeCoordinator::Join(const JoinCall& parameters) {
  joins.push_back(parameters);
  if (const auto fault = NextFault("Join"); fault.has_value() && !fault->status.ok()) return fault->status;
  JoinedRun info;
  info.member = {"run-1", epoch_, parameters.worker, Incarnation()};
  info.lease = Seconds(15);
  info.heartbeat = Seconds(3600);  // tests beat by hand
  info.run = run;
  info.manifest_hash = seeded_ ? ManifestHash(manifest_) : "";
  if (seeded_) {
    for (const FragmentLayout& one : layout_) info.fragments.push_back({one.id, head_, one.elements, ""});
  }
  info.config_version = config_version;
  if (!parameters.BecomesMember()) return info;
  {
    const MutexLock lock(&mutex_);
    info.member.incarnation = Incarnation(++incarnation_);
  }
  if (partition.has_value()) info.data = DataPart{*partition, 4, samples_consumed};
  info.state = seeded_ ? RunState::kTraining : RunState::kStarting;
  info.seed_granted = grant_seed && !seeded_;
  info.accepted = accepted_at_join;
  return info;
}

absl::StatusOr<HeartbeatReply> FakeCoordinator::Heartbeat(const MemberRef& member,
                                                          const HeartbeatCall& report) {
  const auto fault = NextFault("Heartbeat");
  if (fault.has_value() && !fault->applied) return fault->status;
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  const MutexLock lock(&mutex_);
  evaluations.insert(evaluations.end(), report.evaluations.begin(), report.evaluations.end());
  confirmations.insert(confirmations.end(), report.confirmations.begin(), report.confirmations.end());
  waiting.push_back(report.progress.waiting_for);
  if (fault.has_value()) return fault->status;
  return heartbeat_reply;
}

absl::Status FakeCoordinator::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                             std::span<const SeedFragment> fragments) {
  const auto fault = NextFault("SeedParameters");
  if (fault.has_value() && !fault->applied) return fault->status;
  if (seeded_) return absl::FailedPreconditionError("the run is seeded already");
  for (const SeedFragment& fragment : fragments) {
    theta_[fragment.id.value()].assign(fragment.values.begin(), fragment.values.end());
  }
  seeded_ = true;
  return fault.has_value() ? fault->status : absl::OkStatus();
}

absl::StatusOr<PulledVersion> FakeCoordinator::Pull(const MemberRef& member, const PullRequest& request,
                                                    std::span<std::byte> payload) {
  if (const auto fault = NextFault("Pull"); fault.has_value() && !fault->status.ok()) return fault->status;
  if (pulls_cancelled) return absl::CancelledError("cancelled");
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  PulledVersion pulled;
  pulled.epoch = epoch_;
  pulled.state = head_.value() >= finish_at ? RunState::kFinished : state;
  const bool newer = seeded_ && head_ != request.call.after;
  if (!newer && seeded_ && head_.value() >= finish_at) {
    pulled.outcome = PullOutcome::kRunFinished;
    return pulled;
  }
  if (!newer) {
    pulled.outcome = PullOutcome::kNotYet;
    pulled.waiting_for = "the others";
    if (on_not_yet) on_not_yet(++not_yet_);
    return pulled;
  }
  pulled.outcome = PullOutcome::kParameters;
  pulled.version = head_;
  pulled.plan = {.inner_steps = run.inner.steps,
                 .active_workers = 1,
                 .committed_tokens = head_.value() * run.inner.steps * run.tokens_per_step(),
                 .total_tokens = run.total_tokens(),
                 .evaluate = evaluate_all,
                 .deadline = Seconds(60),
                 .data = plan_data,
                 .config_version = config_version,
                 .run_tasks = run_tasks};
  CodecFor(request.codec).Encode(theta_[request.call.fragment.value()], payload);
  pulled.published = HashOf(request.call.fragment);
  pulled.wire_bytes = payload.size();
  return pulled;
}

absl::Status FakeCoordinator::Accept(const PushHeader& header, std::span<const std::byte> payload) {
  if (header.key.base.value() + accept_late_by < head_.value() || header.key.base > head_) {
    return Rejection(absl::StatusCode::kFailedPrecondition, RejectionReason::kStaleBase);
  }
  if (header.codec != run.push_codec) {
    return Rejection(absl::StatusCode::kInvalidArgument, RejectionReason::kWrongCodec);
  }
  if (Crc32c(payload) != header.payload_crc32c) {
    return Rejection(absl::StatusCode::kDataLoss, RejectionReason::kBadChunk);
  }
  held_[header.key.fragment.value()] = {header, {payload.begin(), payload.end()}};
  const bool complete =
      std::all_of(held_.begin(), held_.end(), [](const auto& one) { return one.has_value(); });
  if (complete && !hold_rounds) PublishHeld();
  return absl::OkStatus();
}

void FakeCoordinator::PublishHeld() {
  for (size_t i = 0; i < held_.size(); ++i) {
    if (!held_[i].has_value()) continue;
    std::vector<float> delta(theta_[i].size());
    CodecFor(held_[i]->first.codec).DecodeRange(held_[i]->second, delta.size(), 0, delta);
    for (size_t k = 0; k < delta.size(); ++k) theta_[i][k] -= delta[k];
    committed_.push_back(held_[i]->first.key);
    held_[i].reset();
  }
  head_ = Next(head_);
}

absl::StatusOr<PushReceipt> FakeCoordinator::Push(const MemberRef& member, const PushHeader& header,
                                                  std::span<const std::byte> payload, uint64_t from) {
  headers.push_back(header);
  payloads.emplace_back(payload.begin(), payload.end());
  starts.push_back(from);
  const auto fault = NextFault("Push");
  if (fault.has_value() && !fault->applied && !fault->status.ok()) {
    if (fault->received_bytes > 0) partial_[header.key.base.value()] = fault->received_bytes;
    return fault->status;
  }
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  if (const absl::Status accepted = Accept(header, payload); !accepted.ok()) return accepted;
  if (fault.has_value() && !fault->status.ok()) return fault->status;
  return PushReceipt{{.duplicate = false, .head = head_, .arrived = 1, .expected = 1}, payload.size()};
}

absl::StatusOr<PushStatusReply> FakeCoordinator::GetPushStatus(const MemberRef& member, const PushKey& key) {
  if (const auto fault = NextFault("GetPushStatus"); fault.has_value()) return fault->status;
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  PushStatusReply status{.head = head_};
  const auto& held = held_[key.fragment.value()];
  if (accepting_for > 0) {
    --accepting_for;
    status.stage = PushStage::kPartial;
  } else if (held.has_value() && held->first.key == key) {
    status.stage = PushStage::kAccepted;
  } else if (std::find(committed_.begin(), committed_.end(), key) != committed_.end()) {
    status.stage = PushStage::kCommitted;
  } else if (key.base != head_) {
    status.stage = PushStage::kMissed;
  } else if (partial_.contains(key.base.value())) {
    status.stage = PushStage::kPartial;
    status.received_bytes = partial_.at(key.base.value());
  }
  return status;
}

absl::Status FakeCoordinator::Leave(const MemberRef& member, const std::string& reason) {
  if (const auto fault = NextFault("Leave"); fault.has_value()) return fault->status;
  left.push_back(reason);
  return absl::OkStatus();
}

}  // namespace atl
