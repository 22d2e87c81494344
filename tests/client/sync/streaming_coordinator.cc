#include "tests/client/sync/streaming_coordinator.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "client/sync/rejection.h"
#include "common/crc32c.h"
#include "core/codec.h"
#include "core/fused_outer_step.h"
#include "core/merge.h"

namespace atl {
namespace {

/// Real time that a pull waits for a version, whatever it asks for: tests are short.
constexpr Duration kPoll = Seconds(0.01);

absl::Status Rejection(RejectionReason reason) {
  return WithRejection(absl::FailedPreconditionError(std::string(RejectionReasonName(reason))), reason);
}

}  // namespace

StreamingCoordinator::StreamingCoordinator(Manifest manifest, RunOptions options)
    : run(std::move(options)), manifest_(std::move(manifest)) {
  auto layouts = PlanFragments(manifest_, run.sync.fragments, run.sync.pattern).value();
  for (FragmentLayout& layout : layouts) {
    Fragment& fragment = fragments_.emplace_back();
    fragment.theta.resize(layout.elements);
    fragment.state.assign(OuterStateVectors(run.outer.optimizer), std::vector<float>(layout.elements));
    fragment.layout = std::move(layout);
  }
}

void StreamingCoordinator::SeedWith(float value) {
  const MutexLock lock(&mutex_);
  seeded_ = true;
  for (Fragment& fragment : fragments_) {
    for (const TensorSlot& slot : fragment.layout.slots) {
      std::fill_n(fragment.theta.begin() + static_cast<ptrdiff_t>(slot.offset), slot.elements, value);
    }
  }
}

void StreamingCoordinator::Restore() {
  const MutexLock lock(&mutex_);
  epoch_ = Epoch(epoch_.value() + 1);
  for (Fragment& fragment : fragments_) {
    fragment.head = Next(fragment.head);
    fragment.held.clear();
  }
}

void StreamingCoordinator::GoBack() {
  const MutexLock lock(&mutex_);
  for (Fragment& fragment : fragments_) {
    fragment.head = Version(0);
    fragment.held.clear();
  }
}

void StreamingCoordinator::PublishWithout(FragmentId id, float shift) {
  const MutexLock lock(&mutex_);
  Fragment& fragment = fragments_[id.value()];
  for (const TensorSlot& slot : fragment.layout.slots) {
    for (uint64_t i = 0; i < slot.elements; ++i) fragment.theta[slot.offset + i] += shift;
  }
  fragment.head = Next(fragment.head);
  fragment.held.clear();
}

Version StreamingCoordinator::head(uint32_t fragment) const {
  const MutexLock lock(&mutex_);
  return fragments_[fragment].head;
}
float StreamingCoordinator::first_parameter(uint32_t fragment) const {
  const MutexLock lock(&mutex_);
  return fragments_[fragment].theta[0];
}
uint64_t StreamingCoordinator::tokens(uint32_t fragment) const {
  const MutexLock lock(&mutex_);
  return fragments_[fragment].tokens;
}
std::vector<std::pair<WorkerName, PushKey>> StreamingCoordinator::counted() const {
  const MutexLock lock(&mutex_);
  return counted_;
}
std::vector<PushHeader> StreamingCoordinator::headers() const {
  const MutexLock lock(&mutex_);
  return offers_;
}
std::vector<std::vector<std::byte>> StreamingCoordinator::payloads() const {
  const MutexLock lock(&mutex_);
  return payloads_;
}
std::vector<EvaluationReport> StreamingCoordinator::evaluations() const {
  const MutexLock lock(&mutex_);
  return evaluations_;
}
bool StreamingCoordinator::cancelled() const {
  const MutexLock lock(&mutex_);
  return cancelled_;
}

void StreamingCoordinator::Reopen() {
  const MutexLock lock(&mutex_);
  cancelled_ = false;
}

absl::Status StreamingCoordinator::CheckMember(const MemberRef& member) const {
  if (member.epoch != epoch_) return Rejection(RejectionReason::kWrongEpoch);
  const auto it = incarnations_.find(member.worker);
  const bool current = it != incarnations_.end() && it->second == member.incarnation.value();
  return current ? absl::OkStatus() : Rejection(RejectionReason::kNotAMember);
}

absl::StatusOr<JoinedRun> StreamingCoordinator::Join(const JoinCall& parameters) {
  const MutexLock lock(&mutex_);
  JoinedRun info;
  info.member = {"run-1", epoch_, parameters.worker, Incarnation()};
  info.lease = Seconds(15);
  info.heartbeat = Seconds(3600);
  info.run = run;
  info.config_version = config_version;
  info.manifest_hash = seeded_ ? ManifestHash(manifest_) : "";
  for (const Fragment& fragment : fragments_) {
    if (seeded_) info.fragments.push_back({fragment.layout.id, fragment.head, fragment.layout.elements, ""});
  }
  if (!parameters.BecomesMember()) return info;
  info.member.incarnation = Incarnation(++incarnations_[parameters.worker]);
  info.data = DataPart{0, 4, 0};
  for (const Fragment& fragment : fragments_) {
    const auto held = fragment.held.find(parameters.worker);
    if (held != fragment.held.end()) info.accepted.push_back(held->second.first.key);
  }
  return info;
}

absl::StatusOr<HeartbeatReply> StreamingCoordinator::Heartbeat(const MemberRef& member,
                                                               const HeartbeatCall& report) {
  const MutexLock lock(&mutex_);
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  evaluations_.insert(evaluations_.end(), report.evaluations.begin(), report.evaluations.end());
  return heartbeat_reply;
}

absl::Status StreamingCoordinator::SeedParameters(const MemberRef&, const Manifest&,
                                                  std::span<const SeedFragment> fragments) {
  const MutexLock lock(&mutex_);
  for (const SeedFragment& fragment : fragments) {
    fragments_[fragment.id.value()].theta.assign(fragment.values.begin(), fragment.values.end());
  }
  seeded_ = true;
  return absl::OkStatus();
}

absl::StatusOr<PulledVersion> StreamingCoordinator::Pull(const MemberRef& member, const PullRequest& request,
                                                         std::span<std::byte> payload) {
  if (before_pull) before_pull(request);
  const MonoTime deadline = std::chrono::steady_clock::now() + kPoll;
  const MutexLock lock(&mutex_);
  const Fragment& fragment = fragments_[request.call.fragment.value()];
  const auto newer = [&] { return seeded_ && fragment.head != request.call.after; };
  while (!newer() && !Finished(fragment) && !cancelled_) {
    if (!published_.WaitUntil(&mutex_, deadline)) break;
  }
  if (cancelled_) return absl::CancelledError("cancelled");
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  PulledVersion pulled;
  pulled.epoch = epoch_;
  pulled.state = RunState::kTraining;
  if (!newer()) {
    pulled.outcome = Finished(fragment) ? PullOutcome::kRunFinished : PullOutcome::kNotYet;
    return pulled;
  }
  pulled.outcome = PullOutcome::kParameters;
  pulled.version = fragment.head;
  pulled.plan = {.inner_steps = run.inner.steps,
                 .active_workers = workers,
                 .committed_tokens = fragment.tokens,
                 .total_tokens = run.total_tokens(),
                 .evaluate = evaluate_all && request.call.fragment == FragmentId(0),
                 .deadline = Seconds(60),
                 .config_version = config_version};
  CodecFor(request.codec).Encode(fragment.theta, payload);
  pulled.wire_bytes = payload.size();
  return pulled;
}

absl::Status StreamingCoordinator::Accept(const WorkerName& worker, const PushHeader& header,
                                          std::span<const std::byte> payload) {
  Fragment& fragment = fragments_[header.key.fragment.value()];
  if (header.key.base != fragment.head || Finished(fragment)) return Rejection(RejectionReason::kStaleBase);
  if (Crc32c(payload) != header.payload_crc32c) return Rejection(RejectionReason::kBadChunk);
  if (fragment.held.contains(worker)) return Rejection(RejectionReason::kAlreadyPushed);
  fragment.held[worker] = {header, {payload.begin(), payload.end()}};
  counted_.emplace_back(worker, header.key);
  if (fragment.held.size() >= workers) Close(fragment);
  return absl::OkStatus();
}

void StreamingCoordinator::Close(Fragment& fragment) {
  std::vector<WeightInput> weights;
  for (const auto& [worker, one] : fragment.held) {
    weights.push_back({.tokens = one.first.tokens, .steps = one.first.steps, .staleness = 0});
    fragment.tokens += one.first.tokens;
  }
  const std::vector<float> normalised = NormalisedWeights(run.merge.weights, weights);
  std::vector<MergeInput> inputs;
  for (const auto& [worker, one] : fragment.held) {
    inputs.push_back(
        {.codec = &CodecFor(one.first.codec), .payload = one.second, .weight = normalised[inputs.size()]});
  }
  std::vector<std::span<float>> state;
  for (std::vector<float>& vector : fragment.state) state.emplace_back(vector);
  const absl::Status stepped =
      MergeAndStepRange(WeightedMeanPlan(inputs, fragment.theta.size()), run.outer,
                        Next(fragment.head).value(), 0, fragment.theta, fragment.theta, state);
  if (!stepped.ok()) std::abort();
  fragment.head = Next(fragment.head);
  fragment.held.clear();
  published_.NotifyAll();
}

absl::StatusOr<PushReceipt> StreamingCoordinator::Push(const MemberRef& member, const PushHeader& header,
                                                       std::span<const std::byte> payload, uint64_t) {
  {
    const MutexLock lock(&mutex_);
    offers_.push_back(header);
    payloads_.emplace_back(payload.begin(), payload.end());
  }
  if (before_push) {
    if (const absl::Status failed = before_push(header); !failed.ok()) return failed;
  }
  PushReceipt receipt;
  receipt.wire_bytes = payload.size();
  {
    const MutexLock lock(&mutex_);
    if (const absl::Status current = CheckMember(member); !current.ok()) return current;
    receipt.head = fragments_[header.key.fragment.value()].head;
    if (const absl::Status accepted = Accept(member.worker, header, payload); !accepted.ok()) return accepted;
  }
  if (after_push) {
    if (const absl::Status lost = after_push(header); !lost.ok()) return lost;
  }
  return receipt;
}

absl::StatusOr<PushStatusReply> StreamingCoordinator::GetPushStatus(const MemberRef& member,
                                                                    const PushKey& key) {
  const MutexLock lock(&mutex_);
  if (const absl::Status current = CheckMember(member); !current.ok()) return current;
  const Fragment& fragment = fragments_[key.fragment.value()];
  PushStatusReply status{.head = fragment.head};
  const bool counts = std::ranges::find(counted_, std::pair(member.worker, key)) != counted_.end();
  if (counts) {
    status.stage = fragment.head > key.base ? PushStage::kCommitted : PushStage::kAccepted;
  } else if (key.base != fragment.head) {
    status.stage = PushStage::kMissed;
  }
  return status;
}

void StreamingCoordinator::Forget() {
  const MutexLock lock(&mutex_);
  counted_.clear();
}

void StreamingCoordinator::CancelPulls() {
  const MutexLock lock(&mutex_);
  cancelled_ = true;
  published_.NotifyAll();
}

}  // namespace atl
