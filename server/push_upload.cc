#include "server/push_upload.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/payload_stats.h"
#include "server/refusal.h"
#include "server/storage_refusal.h"

namespace atoll {
namespace {

constexpr Duration kBudgetRetry = Seconds(1);
constexpr Duration kOvertakenRetry = Seconds(0.2);
constexpr char kStagingWrites[] = "contributions";  // a kind of write in RunBook::SetStorageError

/// Why the store did not begin an upload that the run has admitted. A rule of the store refuses it only when
/// a restore, a commit or another stream of the same contribution came in between: asked again, the run
/// itself says what became of the contribution.
absl::Status NotBegun(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsAlreadyExists(status)) return ToRefusal(status);
  return WithRetryAfter(
      absl::UnavailableError(absl::StrFormat("the run has changed since the push began (%s); ask again",
                                             std::string(status.message()))),
      kOvertakenRetry);
}

// A refusal that the client repeats by itself is no news.
bool WorthAnnouncing(RefusalReason reason) {
  return reason != RefusalReason::kNone && reason != RefusalReason::kOverBudget && !OfStorage(reason) &&
         reason != RefusalReason::kShuttingDown && reason != RefusalReason::kNotAMember &&
         reason != RefusalReason::kWrongRun;
}

}  // namespace

absl::Status NoteRefusal(const Services& services, const PushCall& call, const absl::Status& status) {
  const RefusalReason reason = ReasonOf(status);
  // A temporary refusal, as during a commit: the worker retries, and the retry is counted.
  if (reason == RefusalReason::kNone && absl::IsUnavailable(status)) return status;
  const std::string name(RefusalReasonName(reason));
  services.observer->OnContribution(name.empty() ? "other" : absl::AsciiStrToLower(name));
  const bool may_tell = services.book->CountRefused(call.caller.worker, services.clock->Now());
  if (reason == RefusalReason::kNotFinite) {
    services.book->RefusedFor(Offence::kNotFinite, call);
  }
  Effects effects;
  if (OfStorage(reason)) {
    // No news for the worker, which repeats it by itself, but the operator has to mend it.
    services.book->SetStorageError(kStagingWrites, std::string(status.message()), services.clock->Now(),
                                   effects);
    (void)services.outbox->Send(effects);
  }
  if (!WorthAnnouncing(reason)) return status;
  if (may_tell) {
    effects.Event(EventKind::kContributionRefused, call.caller.worker, std::string(status.message()));
    effects.events.back().fragment = call.fragment;
    effects.events.back().version = call.base;
  }
  effects.rounds_changed = true;  // the round may have waited for this one only
  (void)services.outbox->Send(effects);
  return status;
}

PushUpload::PushUpload(const Services& services, const PushCall& call, RunBook::Admission admission)
    : services_(services), call_(call), admission_(std::move(admission)), started_(services.clock->Now()) {}

PushUpload::~PushUpload() {
  if (arrived_bytes_ == 0) return;
  services_.book->CountPush(call_.caller.worker, arrived_bytes_);
  services_.observer->OnPush(arrived_bytes_, ToSeconds(services_.clock->Now() - started_));
}

absl::StatusOr<std::unique_ptr<PushSession>> PushUpload::Start(const Services& services,
                                                               const PushCall& call) {
  if (*services.shutting_down) return ShuttingDown();
  Effects effects;
  auto admission = services.book->AdmitPush(call, services.clock->Now(), effects);
  (void)services.outbox->Send(effects);
  if (!admission.ok()) return NoteRefusal(services, call, admission.status());
  if (admission->capped) {
    services.log.Warning("a contribution claims more than was assigned; counted with the assignment",
                         {{"worker", call.caller.worker},
                          {"tokens", call.tokens},
                          {"steps", call.steps},
                          {"counted_tokens", admission->contribution.tokens}});
  }
  std::unique_ptr<PushUpload> session(new PushUpload(services, call, *std::move(admission)));
  if (!session->already_accepted()) {
    const absl::Status opened = session->Open();
    if (!opened.ok()) return NoteRefusal(services, call, opened);
  }
  return session;
}

absl::Status PushUpload::Open() {
  auto reservation = services_.budget->TryReserve(call_.payload_bytes);
  if (!reservation.ok()) {
    return Refuse(Refusal{.reason = RefusalReason::kOverBudget, .metadata = {}, .retry_after = kBudgetRetry},
                  std::string(reservation.status().message()));
  }
  reservation_ = *std::move(reservation);
  auto upload = services_.store->StartUpload(admission_.contribution.key, call_.payload_bytes);
  if (!upload.ok()) return NotBegun(upload.status());
  upload_ = *std::move(upload);
  return absl::OkStatus();
}

uint64_t PushUpload::received_bytes() const {
  return upload_ ? upload_->received_bytes() : call_.payload_bytes;
}

absl::Status PushUpload::StartOver() {
  upload_->Discard();
  upload_.reset();
  auto upload = services_.store->StartUpload(admission_.contribution.key, call_.payload_bytes);
  if (!upload.ok()) return NotBegun(upload.status());
  upload_ = *std::move(upload);
  return absl::OkStatus();
}

absl::Status PushUpload::Append(uint64_t offset, std::span<const std::byte> data) {
  if (*services_.shutting_down) return ShuttingDown();
  if (already_accepted()) return absl::OkStatus();
  if (!upload_) return absl::FailedPreconditionError("the upload has ended; start it again");
  const absl::Status written = Write(offset, data);
  return written.ok() ? written : NoteRefusal(services_, call_, written);
}

absl::Status PushUpload::Write(uint64_t offset, std::span<const std::byte> data) {
  // A client that begins at 0 has forgotten, or never knew, what arrived before.
  if (!any_data_ && offset == 0 && upload_->received_bytes() > 0) ATOLL_RETURN_IF_ERROR(StartOver());
  any_data_ = true;
  const uint64_t received = upload_->received_bytes();
  if (offset != received) {
    return Refuse(
        RefusalReason::kBadChunk,
        absl::StrFormat("worker '%s' sent a chunk at offset %d of its payload; %d bytes have arrived",
                        call_.caller.worker, offset, received));
  }
  if (data.size() > call_.payload_bytes - received) {
    return Refuse(RefusalReason::kWrongSize,
                  absl::StrFormat("worker '%s' sent more than the %d bytes it announced", call_.caller.worker,
                                  call_.payload_bytes));
  }
  if (received == 0) {
    scan_.emplace(CodecFor(call_.codec), admission_.elements);
    crc32c_ = 0;
  }
  const absl::Status appended = upload_->Append(data);
  if (!appended.ok()) {
    scan_.reset();
    return ToRefusal(appended);
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
  if (scan_ && crc32c_ == call_.payload_crc32c) norm = scan_->norm();
  // What came in several streams, and what is wrong, is looked at as a whole.
  if (!norm) {
    ATOLL_ASSIGN_OR_RETURN(norm, CheckStagedPayload());
  }
  if (*norm > services_.options.max_contribution_norm) {
    return Refuse(
        RefusalReason::kNotFinite,
        absl::StrFormat("the contribution of worker '%s' to version %d has norm %g; above %g it cannot be "
                        "merged in float32",
                        call_.caller.worker, call_.base.value(), *norm,
                        services_.options.max_contribution_norm));
  }
  admission_.contribution.norm = *norm;
  const absl::Status fresh = services_.book->CheckReplay(admission_.contribution);
  if (!fresh.ok()) services_.book->RefusedFor(Offence::kReplayed, call_);
  return fresh;
}

absl::StatusOr<double> PushUpload::CheckStagedPayload() {
  auto payload = upload_->View();
  if (!payload.ok()) return ToRefusal(payload.status());
  const std::span<const std::byte> bytes = (*payload)->bytes();
  const WorkerName& worker = call_.caller.worker;
  const uint32_t crc = Crc32c(bytes);
  if (crc != call_.payload_crc32c) {
    return Refuse(
        RefusalReason::kBadChunk,
        absl::StrFormat("the payload of worker '%s' has crc32c %08x, announced was %08x; send it again",
                        worker, crc, call_.payload_crc32c));
  }
  const Codec& codec = CodecFor(call_.codec);
  const absl::Status valid = codec.Validate(bytes, admission_.elements);
  if (!valid.ok()) {
    return Refuse(RefusalReason::kWrongSize, absl::StrFormat("the payload of worker '%s' is malformed: %s",
                                                             worker, std::string(valid.message())));
  }
  const auto norm = PayloadNorm(codec, bytes, admission_.elements);
  if (!norm.ok()) {
    return Refuse(RefusalReason::kNotFinite,
                  absl::StrFormat("the contribution of worker '%s' to version %d is not finite: %s", worker,
                                  call_.base.value(), std::string(norm.status().message())));
  }
  return *norm;
}

absl::StatusOr<PushResult> PushUpload::Duplicate() {
  services_.observer->OnContribution("duplicate");
  PushResult result = services_.book->Arrivals(call_.fragment, services_.clock->Now());
  result.duplicate = true;
  return result;
}

absl::StatusOr<PushResult> PushUpload::Accept() {
  const Contribution& contribution = admission_.contribution;
  ATOLL_RETURN_IF_ERROR(services_.book->BeginAccept(call_.caller, admission_, services_.clock->Now()));
  const absl::Status accepted = upload_->Accept(contribution);
  Effects effects;
  const PushResult result =
      services_.book->EndAccept(admission_, accepted.ok(), services_.clock->Now(), effects);
  effects.rounds_changed = true;
  if (accepted.ok()) services_.book->SetStorageError(kStagingWrites, "", services_.clock->Now(), effects);
  (void)services_.outbox->Send(effects);
  if (!accepted.ok()) return ToRefusal(accepted);
  services_.observer->OnContribution("accepted");
  services_.log.Info("contribution accepted", {{"worker", contribution.key.worker},
                                               {"fragment", contribution.key.fragment.value()},
                                               {"base", contribution.key.base.value()},
                                               {"bytes", call_.payload_bytes}});
  if (result.late) services_.observer->OnLateContribution();
  return result;
}

absl::StatusOr<PushResult> PushUpload::Finish() {
  if (already_accepted()) return Duplicate();
  if (*services_.shutting_down) return ShuttingDown();
  if (!upload_) return absl::FailedPreconditionError("the upload has ended; start it again");
  if (upload_->received_bytes() != call_.payload_bytes) {
    return NoteRefusal(
        services_, call_,
        Refuse(RefusalReason::kBadChunk,
               absl::StrFormat("the upload of worker '%s' ended after %d of %d bytes; send the rest",
                               call_.caller.worker, upload_->received_bytes(), call_.payload_bytes)));
  }
  const absl::Status checked = CheckPayload();
  if (!checked.ok()) {
    // Bytes that are wrong are of no use to a resumed upload.
    if (!OfStorage(ReasonOf(checked))) upload_->Discard();
    upload_.reset();
    return NoteRefusal(services_, call_, checked);
  }
  auto result = Accept();
  upload_.reset();
  reservation_.Release();
  if (!result.ok()) return NoteRefusal(services_, call_, result.status());
  return result;
}

}  // namespace atoll
