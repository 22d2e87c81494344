#include "server/rpc/decode.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/printable.h"
#include "common/signature.h"
#include "common/status.h"
#include "core/membership.h"
#include "protos/wire/codec.h"
#include "protos/wire/manifest.h"
#include "protos/wire/protocol.h"
#include "server/rejection.h"

namespace atl {
namespace {

// A signature is checked for each: a heartbeat must not buy more work than this.
constexpr int kMaxConfirmations = 256;
constexpr int kMaxEvaluations = 256;

absl::Status BadField(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", std::string(what)));
}

/// What is kept, or shown to others, of a text that a client may choose.
absl::Status CheckText(std::string_view field, const std::string& text) {
  if (text.size() <= kMaxTextBytes) return absl::OkStatus();
  return BadField(field, absl::StrFormat("has %d bytes; at most %d are kept", text.size(), kMaxTextBytes));
}

absl::Status CheckTexts(const v1::Capabilities& in) {
  ATOLL_RETURN_IF_ERROR(CheckText("capabilities.software_version", in.software_version()));
  ATOLL_RETURN_IF_ERROR(CheckText("capabilities.device", in.device()));
  return CheckText("capabilities.device_name", in.device_name());
}

absl::Status CheckTexts(const v1::JoinRequest& request) {
  ATOLL_RETURN_IF_ERROR(CheckText("manifest_hash", request.manifest_hash()));
  ATOLL_RETURN_IF_ERROR(CheckText("expected_run", request.expected_run()));
  ATOLL_RETURN_IF_ERROR(CheckTexts(request.capabilities()));
  ATOLL_RETURN_IF_ERROR(CheckText("dataset.tokenizer", request.dataset().tokenizer()));
  return CheckText("dataset.fingerprint", request.dataset().fingerprint());
}

absl::StatusOr<WorkerRole> DecodeRole(v1::Role role) {
  switch (role) {
    case v1::ROLE_TRAINER:
      return WorkerRole::kTrainer;
    case v1::ROLE_EVALUATOR:
      return WorkerRole::kEvaluator;
    case v1::ROLE_OBSERVER:
      return WorkerRole::kObserver;
    default:
      return BadField("role", absl::StrCat("no role of ours has the number ", static_cast<int>(role)));
  }
}

CapabilitiesView DecodeCapabilities(const v1::Capabilities& in) {
  return {.software_version = Printable(in.software_version()),
          .device = Printable(in.device()),
          .device_name = Printable(in.device_name()),
          .threads = in.threads(),
          .memory_bytes = in.memory_bytes(),
          .device_memory_bytes = in.device_memory_bytes()};
}

/// What a stranger says: nothing negative, nothing that is not finite, nothing beyond the life of a process.
double Spent(double seconds) { return seconds > 0 && seconds <= kLongestTimeSpent ? seconds : 0; }

TimeSpent DecodeTimes(const google::protobuf::RepeatedPtrField<v1::TimeSpent>& in) {
  TimeSpent spent;
  for (const v1::TimeSpent& one : in) {
    if (one.use() > 0 && static_cast<size_t>(one.use()) < kTimeUses) {
      spent[static_cast<TimeUse>(one.use())] = Spent(one.seconds());
    }
  }
  return spent;
}

/// What a worker says of itself is for people and plots: an absurd figure counts as not known.
double Believable(double value, double most) { return value >= 0 && value <= most ? value : 0; }

ProgressView DecodeProgress(const v1::Progress& in) {
  ProgressView out;
  out.phase = v1::WorkerPhase_IsValid(in.phase()) ? static_cast<WorkerPhaseView>(in.phase())
                                                  : WorkerPhaseView::kUnknown;
  out.base = Version(in.base_version());
  out.step = in.step();
  out.steps = in.steps();
  out.loss = Believable(in.loss(), kLargestLoss);
  out.gradient_norm = Believable(in.gradient_norm(), 1e30);
  out.learning_rate = Believable(in.learning_rate(), 1e6);
  out.tokens_per_second = Believable(in.tokens_per_second(), 1e12);
  out.memory_bytes = in.memory_bytes();
  out.training = DecodeTimes(in.training_time());
  out.exchanges = DecodeTimes(in.exchange_time());
  if (in.training_time().empty()) {  // an older worker
    out.training[TimeUse::kCompute] = Spent(in.compute_seconds());
    out.training[TimeUse::kWait] = Spent(in.wait_seconds());
    out.training[TimeUse::kPush] = Spent(in.exchange_seconds());
  }
  out.waiting_for = ShownText(in.waiting_for());
  return out;
}

}  // namespace

std::string ShownText(const std::string& text, size_t most) {
  std::string shown = Printable(text);
  if (shown.size() <= most) return shown;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;
  return shown.substr(0, end);
}

absl::StatusOr<Caller> DecodeCaller(const v1::WorkerRef& ref) {
  if (ref.worker().empty()) return BadField("worker.worker", "is empty; a call after Join names its worker");
  if (ref.worker().size() > kMaxWorkerName) {
    return BadField("worker.worker", absl::StrCat("is longer than ", kMaxWorkerName, " bytes"));
  }
  return Caller{.run_id = ref.run_id(),
                .epoch = Epoch(ref.epoch()),
                .worker = ref.worker(),
                .incarnation = Incarnation(ref.incarnation())};
}

absl::StatusOr<JoinCall> DecodeJoin(const v1::JoinRequest& request) {
  ATOLL_RETURN_IF_ERROR(CheckProtocolVersion(request.protocol(), "worker"));
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(request.worker()));
  const size_t secret_bytes = request.secret().size();
  if (secret_bytes < kMinSecretBytes || secret_bytes > kMaxSecretBytes) {
    return BadField("secret", absl::StrFormat("has %d bytes; %d to %d are allowed", secret_bytes,
                                              kMinSecretBytes, kMaxSecretBytes));
  }
  ATOLL_RETURN_IF_ERROR(CheckTexts(request));
  ATOLL_ASSIGN_OR_RETURN(const WorkerRole role, DecodeRole(request.role()));
  JoinCall call;
  call.worker = request.worker();
  call.secret = request.secret();
  call.role = role;
  call.manifest_hash = request.manifest_hash();
  call.capabilities = DecodeCapabilities(request.capabilities());
  if (request.has_dataset()) {
    const v1::Dataset& data = request.dataset();
    call.dataset = DatasetView{.tokenizer = data.tokenizer(),
                               .vocabulary = data.vocabulary(),
                               .train_tokens = data.train_tokens(),
                               .fingerprint = data.fingerprint()};
  }
  call.expected_run = request.expected_run();
  if (!request.public_key().empty() && request.public_key().size() != kPublicKeyBytes) {
    return BadField("public_key", absl::StrFormat("has %d bytes; an Ed25519 key has %d",
                                                  request.public_key().size(), kPublicKeyBytes));
  }
  call.public_key = request.public_key();
  return call;
}

absl::StatusOr<HeartbeatCall> DecodeHeartbeat(const v1::HeartbeatRequest& request) {
  HeartbeatCall call;
  ATOLL_ASSIGN_OR_RETURN(call.caller, DecodeCaller(request.worker()));
  call.progress = DecodeProgress(request.progress());
  if (request.has_capabilities()) {
    ATOLL_RETURN_IF_ERROR(CheckTexts(request.capabilities()));
    call.capabilities = DecodeCapabilities(request.capabilities());
  }
  if (request.evaluations_size() > kMaxEvaluations) {
    return BadField("evaluations", absl::StrFormat("are %d; at most %d are allowed",
                                                   request.evaluations_size(), kMaxEvaluations));
  }
  call.evaluations.reserve(static_cast<size_t>(request.evaluations_size()));
  for (const v1::EvaluationReport& report : request.evaluations()) {
    call.evaluations.push_back(
        {.version = Version(report.version()), .loss = report.loss(), .tokens = report.tokens()});
  }
  if (request.confirmations_size() > kMaxConfirmations) {
    return BadField("confirmations", absl::StrFormat("are %d; at most %d are allowed",
                                                     request.confirmations_size(), kMaxConfirmations));
  }
  for (const v1::Confirmation& confirmation : request.confirmations()) {
    call.confirmations.push_back({.fragment = FragmentId(confirmation.fragment()),
                                  .version = Version(confirmation.version()),
                                  .published = ContentHashFromProto(confirmation.published()),
                                  .signature = confirmation.signature()});
  }
  return call;
}

absl::StatusOr<PushCall> DecodePush(const v1::PushHeader& header) {
  PushCall call;
  ATOLL_ASSIGN_OR_RETURN(call.caller, DecodeCaller(header.worker()));
  const absl::StatusOr<CodecKind> codec = CodecFromProto(header.codec());
  if (!codec.ok()) return Reject(RejectionReason::kWrongCodec, std::string(codec.status().message()));
  call.codec = *codec;
  call.fragment = FragmentId(header.fragment());
  call.base = Version(header.base_version());
  call.sequence = header.sequence();
  call.payload_bytes = header.payload_bytes();
  call.payload_crc32c = header.payload_crc32c();
  call.tokens = header.tokens();
  call.steps = header.steps();
  if (header.has_partition()) call.partition = header.partition();
  call.samples_consumed = header.samples_consumed();
  call.mean_loss = header.mean_loss();
  return call;
}

absl::StatusOr<PushStatusCall> DecodePushStatus(const v1::GetPushStatusRequest& request) {
  PushStatusCall call;
  ATOLL_ASSIGN_OR_RETURN(call.caller, DecodeCaller(request.worker()));
  call.fragment = FragmentId(request.push().fragment());
  call.base = Version(request.push().base_version());
  call.sequence = request.push().sequence();
  return call;
}

ConfirmationQuery DecodeConfirmationQuery(const v1::GetConfirmationsRequest& request) {
  ConfirmationQuery query{.fragment = FragmentId(request.fragment()),
                          .first = Version(request.first_version()),
                          .last = Version(request.last_version()),
                          .limit = request.limit()};
  if (request.has_after()) {
    query.after = {.version = Version(request.after().version()), .worker = request.after().worker()};
  }
  return query;
}

absl::StatusOr<PullCall> DecodePull(const v1::PullRequest& request) {
  if (request.wait_ms() > kMaxPullWaitMs) {
    return BadField("wait_ms", absl::StrFormat("%d is above the bound of %d; wait less and call again",
                                               request.wait_ms(), kMaxPullWaitMs));
  }
  PullCall call;
  call.unpacks_zstd = std::ranges::find(request.accepts(), v1::COMPRESSION_ZSTD) != request.accepts().end();
  ATOLL_ASSIGN_OR_RETURN(call.caller, DecodeCaller(request.worker()));
  call.fragment = FragmentId(request.fragment());
  if (request.has_after_version()) call.after = Version(request.after_version());
  call.wait = std::chrono::milliseconds(request.wait_ms());
  if (request.has_have_version()) call.have = Version(request.have_version());
  return call;
}

absl::StatusOr<std::optional<PullPart>> DecodePullRange(const v1::PullRequest& request) {
  if (!request.has_range()) return std::nullopt;
  const v1::PullRange& range = request.range();
  const bool whole_chunks =
      range.first_byte() % kWireChunkBytes == 0 && range.end_byte() % kWireChunkBytes == 0;
  if (!whole_chunks || (range.end_byte() != 0 && range.end_byte() <= range.first_byte())) {
    return BadField("range",
                    absl::StrFormat("from byte %d to byte %d: begins and ends at multiples of %d, and is "
                                    "not empty",
                                    range.first_byte(), range.end_byte(), kWireChunkBytes));
  }
  PullPart part{
      .version = Version(range.version()), .first_byte = range.first_byte(), .end_byte = range.end_byte()};
  if (range.has_delta_base()) part.delta_base = Version(range.delta_base());
  return part;
}

}  // namespace atl
