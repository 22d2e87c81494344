#include "server/ingest/push_upload.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/planted_defect.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/payload_gaps.h"
#include "core/payload_stats.h"
#include "server/rejection.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

constexpr Duration kBudgetRetry = Seconds(1);
constexpr Duration kOvertakenRetry = Seconds(0.2);
constexpr char kStagingWrites[] = "contributions";  // a kind of write in RunFaults::SetStorageError

/// Why the store did not begin an upload that the run has admitted. A rule of the store refuses it only when
/// a restore, a commit or another stream of the same contribution came in between: asked again, the run
/// itself says what became of the contribution.
absl::Status NotBegun(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsAlreadyExists(status)) return ToRejection(status);
  return WithRetryAfter(
      absl::UnavailableError(absl::StrFormat("the run has changed since the push began (%s); ask again",
                                             std::string(status.message()))),
      kOvertakenRetry);
}

// A refusal that the client repeats by itself is no news.
bool WorthAnnouncing(RejectionReason reason) {
  return reason != RejectionReason::kNone && reason != RejectionReason::kOverBudget && !OfStorage(reason) &&
         reason != RejectionReason::kShuttingDown && reason != RejectionReason::kNotAMember &&
         reason != RejectionReason::kWrongRun;
}

}  // namespace

absl::Status NoteRejection(const CoordinatorContext& context, const WorkerName& worker, const PushKey& push,
                           const absl::Status& status) {
  const RejectionReason reason = ReasonOf(status);
  // A temporary refusal, as during a commit: the worker retries, and the retry is counted.
  if (reason == RejectionReason::kNone && absl::IsUnavailable(status)) return status;
  const std::string name(RejectionReasonName(reason));
  context.observer->OnContribution(name.empty() ? "other" : absl::AsciiStrToLower(name));
  const bool announce = context.state->contributions().CountRejected(worker, context.clock->Now());
  if (reason == RejectionReason::kNotFinite) {
    context.state->contributions().RejectedFor(Offence::kNotFinite, worker, push);
  }
  Effects effects;
  if (OfStorage(reason)) {
    // No news for the worker, which repeats it by itself, but the operator has to mend it.
    context.state->faults().SetStorageError(kStagingWrites, std::string(status.message()),
                                            context.clock->Now(), effects);
    (void)context.effect_executor->Execute(effects);
  }
  if (!WorthAnnouncing(reason)) return status;
  if (announce) {
    effects.Event(EventKind::kContributionRefused, worker, std::string(status.message()));
    effects.events.back().fragment = push.fragment;
    effects.events.back().version = push.base;
  }
  effects.rounds_changed = true;  // the round may have waited for this one only
  (void)context.effect_executor->Execute(effects);
  return status;
}

PushUpload::PushUpload(const CoordinatorContext& context, MemberRef caller, const PushHeader& header,
                       Contributions::Admission admission)
    : context_(context),
      caller_(std::move(caller)),
      header_(header),
      admission_(std::move(admission)),
      started_(context.clock->Now()) {}

PushUpload::~PushUpload() {
  if (arrived_bytes_ == 0) return;
  context_.state->contributions().CountPush(caller_.worker, arrived_bytes_);
  context_.observer->OnPush(arrived_bytes_, ToSeconds(context_.clock->Now() - started_));
}

absl::StatusOr<std::unique_ptr<PushSession>> PushUpload::Start(const CoordinatorContext& context,
                                                               const MemberRef& caller,
                                                               const PushHeader& header) {
  if (*context.shutting_down) return ShuttingDown();
  Effects effects;
  auto admission = context.state->contributions().AdmitPush(caller, header, context.clock->Now(), effects);
  (void)context.effect_executor->Execute(effects);
  if (!admission.ok()) return NoteRejection(context, caller.worker, header.key, admission.status());
  if (admission->capped) {
    context.log.Warning("a contribution claims more than was assigned; counted with the assignment",
                        {{"worker", caller.worker},
                         {"tokens", header.tokens},
                         {"steps", header.steps},
                         {"counted_tokens", admission->contribution.tokens}});
  }
  std::unique_ptr<PushUpload> session(new PushUpload(context, caller, header, *std::move(admission)));
  if (!session->already_accepted()) {
    const absl::Status opened = session->Open();
    if (!opened.ok()) return NoteRejection(context, caller.worker, header.key, opened);
  }
  return session;
}

absl::Status PushUpload::Open() {
  auto reservation = context_.budget->TryReserve(header_.payload_bytes);
  if (!reservation.ok()) {
    return Reject(
        Rejection{.reason = RejectionReason::kOverBudget, .metadata = {}, .retry_after = kBudgetRetry},
        std::string(reservation.status().message()));
  }
  reservation_ = *std::move(reservation);
  auto upload = context_.store->StartUpload(admission_.contribution.key, header_.payload_bytes);
  if (!upload.ok()) return NotBegun(upload.status());
  upload_ = *std::move(upload);
  return absl::OkStatus();
}

uint64_t PushUpload::received_bytes() const {
  return upload_ ? upload_->received_bytes() : header_.payload_bytes;
}

absl::Status PushUpload::StartOver() {
  upload_->Discard();
  upload_.reset();
  auto upload = context_.store->StartUpload(admission_.contribution.key, header_.payload_bytes);
  if (!upload.ok()) return NotBegun(upload.status());
  upload_ = *std::move(upload);
  return absl::OkStatus();
}

absl::Status PushUpload::Append(uint64_t offset, std::span<const std::byte> data) {
  if (*context_.shutting_down) return ShuttingDown();
  if (already_accepted()) return absl::OkStatus();
  if (!upload_) return absl::FailedPreconditionError("the upload has ended; start it again");
  const absl::Status written = Write(offset, data);
  return written.ok() ? written : NoteRejection(context_, caller_.worker, header_.key, written);
}

absl::Status PushUpload::Write(uint64_t offset, std::span<const std::byte> data) {
  // A client that begins at 0 has forgotten, or never knew, what arrived before.
  if (!any_data_ && offset == 0 && upload_->received_bytes() > 0) ATOLL_RETURN_IF_ERROR(StartOver());
  any_data_ = true;
  const uint64_t received = upload_->received_bytes();
  if (offset != received) {
    return Reject(
        RejectionReason::kBadChunk,
        absl::StrFormat("worker '%s' sent a chunk at offset %d of its payload; %d bytes have arrived",
                        caller_.worker, offset, received));
  }
  if (data.size() > header_.payload_bytes - received) {
    return Reject(RejectionReason::kWrongSize,
                  absl::StrFormat("worker '%s' sent more than the %d bytes it announced", caller_.worker,
                                  header_.payload_bytes));
  }
  if (received == 0) {
    scan_.emplace(CodecFor(header_.codec), admission_.elements);
    crc32c_ = 0;
  }
  const absl::Status appended = upload_->Append(data);
  if (!appended.ok()) {
    scan_.reset();
    return ToRejection(appended);
  }
  arrived_bytes_ += data.size();
  if (scan_) {
    crc32c_ = Crc32c(data, crc32c_);
    scan_->Feed(data);
  }
  return absl::OkStatus();
}

absl::Status PushUpload::CheckPayload() {
  std::optional<double> norm;
  if (scan_ && crc32c_ == header_.payload_crc32c) norm = scan_->norm();
  // What came in several streams, and what is wrong, is looked at as a whole.
  if (!norm) {
    ATOLL_ASSIGN_OR_RETURN(norm, CheckStagedPayload());
  }
  ATOLL_RETURN_IF_ERROR(CheckPayloadGaps());
  if (*norm > context_.options.max_contribution_norm && !Planted(PlantedDefect::kTakesNonFinite)) {
    return Reject(
        RejectionReason::kNotFinite,
        absl::StrFormat("the contribution of worker '%s' to version %d has norm %g; above %g it cannot be "
                        "merged in float32",
                        caller_.worker, header_.key.base.value(), *norm,
                        context_.options.max_contribution_norm));
  }
  admission_.contribution.norm = *norm;
  const absl::Status fresh = context_.state->contributions().CheckReplay(admission_.contribution);
  if (!fresh.ok()) {
    context_.state->contributions().RejectedFor(Offence::kReplayed, caller_.worker, header_.key);
  }
  return fresh;
}

absl::StatusOr<double> PushUpload::CheckStagedPayload() {
  auto payload = upload_->View();
  if (!payload.ok()) return ToRejection(payload.status());
  const std::span<const std::byte> bytes = (*payload)->bytes();
  const WorkerName& worker = caller_.worker;
  const uint32_t crc = Crc32c(bytes);
  if (crc != header_.payload_crc32c) {
    return Reject(
        RejectionReason::kBadChunk,
        absl::StrFormat("the payload of worker '%s' has crc32c %08x, announced was %08x; send it again",
                        worker, crc, header_.payload_crc32c));
  }
  const Codec& codec = CodecFor(header_.codec);
  const absl::Status valid = codec.Validate(bytes, admission_.elements);
  if (!valid.ok()) {
    return Reject(RejectionReason::kWrongSize, absl::StrFormat("the payload of worker '%s' is malformed: %s",
                                                               worker, std::string(valid.message())));
  }
  const auto norm = PayloadNorm(codec, bytes, admission_.elements);
  if (!norm.ok() && Planted(PlantedDefect::kTakesNonFinite)) return 1.0;
  if (!norm.ok()) {
    return Reject(RejectionReason::kNotFinite,
                  absl::StrFormat("the contribution of worker '%s' to version %d is not finite: %s", worker,
                                  header_.key.base.value(), std::string(norm.status().message())));
  }
  return *norm;
}

absl::Status PushUpload::CheckPayloadGaps() {
  // The simulator's payload that is not finite is so everywhere.
  if (admission_.zero_gaps == nullptr || Planted(PlantedDefect::kTakesNonFinite)) return absl::OkStatus();
  auto payload = upload_->View();
  if (!payload.ok()) return ToRejection(payload.status());
  const absl::Status gaps = CheckGaps(CodecFor(header_.codec), (*payload)->bytes(), *admission_.zero_gaps);
  if (gaps.ok()) return gaps;
  return Reject(RejectionReason::kWrongSize, absl::StrFormat("the payload of worker '%s' is malformed: %s",
                                                             caller_.worker, std::string(gaps.message())));
}

absl::StatusOr<PushResult> PushUpload::Duplicate() {
  context_.observer->OnContribution("duplicate");
  PushResult result = context_.state->contributions().Arrivals(header_.key.fragment, context_.clock->Now());
  result.duplicate = true;
  return result;
}

absl::StatusOr<PushResult> PushUpload::Accept() {
  const Contribution& contribution = admission_.contribution;
  ATOLL_RETURN_IF_ERROR(
      context_.state->contributions().BeginAccept(caller_, admission_, context_.clock->Now()));
  const bool forgotten =
      Planted(PlantedDefect::kAcknowledgesTooEarly) && contribution.payload_crc32c % 16 == 0;
  const absl::Status accepted = forgotten ? absl::OkStatus() : upload_->Accept(contribution);
  Effects effects;
  const PushResult result =
      context_.state->contributions().EndAccept(admission_, accepted.ok(), context_.clock->Now(), effects);
  effects.rounds_changed = true;
  if (accepted.ok())
    context_.state->faults().SetStorageError(kStagingWrites, "", context_.clock->Now(), effects);
  (void)context_.effect_executor->Execute(effects);
  if (!accepted.ok()) return ToRejection(accepted);
  context_.observer->OnContribution("accepted");
  context_.log.Info("contribution accepted", {{"worker", contribution.key.worker},
                                              {"fragment", contribution.key.fragment.value()},
                                              {"base", contribution.key.base.value()},
                                              {"bytes", header_.payload_bytes}});
  if (result.late) context_.observer->OnLateContribution();
  return result;
}

absl::StatusOr<PushResult> PushUpload::Finish() {
  if (already_accepted()) return Duplicate();
  if (*context_.shutting_down) return ShuttingDown();
  if (!upload_) return absl::FailedPreconditionError("the upload has ended; start it again");
  if (upload_->received_bytes() != header_.payload_bytes) {
    return NoteRejection(
        context_, caller_.worker, header_.key,
        Reject(RejectionReason::kBadChunk,
               absl::StrFormat("the upload of worker '%s' ended after %d of %d bytes; send the rest",
                               caller_.worker, upload_->received_bytes(), header_.payload_bytes)));
  }
  const absl::Status checked = CheckPayload();
  if (!checked.ok()) {
    // Bytes that are wrong are of no use to a resumed upload.
    if (!OfStorage(ReasonOf(checked))) upload_->Discard();
    upload_.reset();
    return NoteRejection(context_, caller_.worker, header_.key, checked);
  }
  auto result = Accept();
  upload_.reset();
  if (Planted(PlantedDefect::kLeaksMemory)) (void)new ByteBudget::Reservation(std::move(reservation_));
  reservation_.Release();
  if (!result.ok()) return NoteRejection(context_, caller_.worker, header_.key, result.status());
  return result;
}

}  // namespace atl
