#include "tests/integration/crash/synthetic_worker.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/rpc/channel.h"
#include "common/crc32c.h"
#include "common/status.h"

namespace atl {

SyntheticWorker::SyntheticWorker(const SyntheticRun* run, Promises* promises, const std::string& address,
                                 uint32_t index, const std::shared_ptr<const ChannelSecurity>& security)
    : run_(run), promises_(promises), name_(CrashWorkerName(index)) {
  const ChannelOptions channel{.address = address,
                               .reconnect_initial = Seconds(0.02),
                               .reconnect_maximum = Seconds(0.1),
                               .security = security};
  connection_ = std::make_unique<GrpcConnection>(
      GrpcConnectionOptions{
          .address = address, .unary_deadline = Seconds(5), .stall = Seconds(5), .security = security},
      MakeChannel(channel), &clock_);
  payload_.resize(run_->layout.elements * sizeof(float));
  thread_ = std::thread([this] { Run(); });
}

SyntheticWorker::~SyntheticWorker() {
  stop_ = true;
  connection_->CancelPulls();
  connection_->CancelPushes();
  thread_.join();
}

std::string SyntheticWorker::complaint() const {
  MutexLock lock(&mutex_);
  return complaint_;
}

void SyntheticWorker::Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(15)); }

void SyntheticWorker::Run() {
  while (!stop_) {
    const absl::Status round = Round();
    if (round.ok()) continue;
    // Refused: restored meanwhile, superseded or forgotten; it begins anew. Not reached: the same, after a
    // moment.
    if (!absl::IsUnavailable(round) && !absl::IsDeadlineExceeded(round)) info_.reset();
    Pause();
  }
}

absl::Status SyntheticWorker::EnsureMember() {
  if (info_) return absl::OkStatus();
  JoinCall parameters{.worker = name_, .secret = "0123456789abcdef-" + name_};
  parameters.manifest_hash = ManifestHash(run_->manifest);
  ATOLL_ASSIGN_OR_RETURN(JoinedRun joined, connection_->Join(parameters));
  // A contribution of another epoch is nobody's business any more.
  base_.reset();
  info_ = std::move(joined);
  return absl::OkStatus();
}

absl::Status SyntheticWorker::SeedIfAsked() {
  if (!info_->manifest_hash.empty()) return absl::OkStatus();
  HeartbeatCall report;
  ATOLL_ASSIGN_OR_RETURN(const HeartbeatReply reply, connection_->Heartbeat(info_->member, report));
  if (!reply.fragments.empty()) {
    info_.reset();  // seeded by somebody else: join again for what there is
    return EnsureMember();
  }
  if (!reply.seed_granted) return absl::UnavailableError("nobody seeded yet");
  const SeedFragment fragment{.id = FragmentId(0), .values = run_->seed};
  const absl::Status seeded =
      connection_->SeedParameters(info_->member, run_->manifest, std::span(&fragment, 1));
  info_.reset();
  return seeded;
}

absl::StatusOr<bool> SyntheticWorker::PullNext() {
  PullRequest request{.call = {.fragment = FragmentId(0), .after = base_, .wait = Seconds(0.5)}};
  request.elements = run_->layout.elements;
  ATOLL_ASSIGN_OR_RETURN(const PulledVersion pulled, connection_->Pull(info_->member, request, payload_));
  if (pulled.outcome != PullOutcome::kParameters) return false;
  if (pulled.epoch != info_->member.epoch) {
    MutexLock lock(&mutex_);
    complaint_ =
        absl::StrFormat("%s of one epoch pulled version %d of another", name_, pulled.version.value());
  }
  if (!promises_->Pulled(pulled.epoch, pulled.version, pulled.published)) {
    MutexLock lock(&mutex_);
    complaint_ = absl::StrFormat("version %d was published with two contents", pulled.version.value());
  }
  base_ = pulled.version;
  contributed_ = false;
  return true;
}

absl::Status SyntheticWorker::PushUntilKnown() {
  const PushKey key{.fragment = FragmentId(0), .base = *base_, .sequence = 0};
  ATOLL_ASSIGN_OR_RETURN(const PushStatusReply status, connection_->GetPushStatus(info_->member, key));
  promises_->HeadIs(status.head);
  if (status.stage == PushStage::kAccepted || status.stage == PushStage::kCommitted) {
    promises_->Accepted(info_->member.epoch, name_, *base_);
    contributed_ = true;
  }
  if (status.stage == PushStage::kMissed) contributed_ = true;
  if (contributed_) return absl::OkStatus();
  const std::vector<float> delta = run_->Contribution(name_, *base_);
  const auto payload = std::as_bytes(std::span(delta));
  PushHeader header{.key = key, .payload_bytes = payload.size(), .payload_crc32c = Crc32c(payload)};
  header.tokens = run_->TokensOf(name_);
  header.steps = run_->StepsOf(name_);
  header.mean_loss = 1;
  ATOLL_ASSIGN_OR_RETURN(const PushReceipt receipt,
                         connection_->Push(info_->member, header, payload, status.received_bytes));
  promises_->Accepted(info_->member.epoch, name_, *base_);
  promises_->HeadIs(receipt.head);
  contributed_ = true;
  return absl::OkStatus();
}

absl::Status SyntheticWorker::Round() {
  ATOLL_RETURN_IF_ERROR(EnsureMember());
  ATOLL_RETURN_IF_ERROR(SeedIfAsked());
  if (!info_) return absl::OkStatus();
  if (!base_ || contributed_) {
    ATOLL_ASSIGN_OR_RETURN(const bool pulled, PullNext());
    if (!pulled) return absl::OkStatus();
  }
  return PushUntilKnown();
}

}  // namespace atl
