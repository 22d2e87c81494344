#include "protos/wire/pull.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/codec.h"
#include "protos/wire/field_check.h"
#include "protos/wire/manifest.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

using std::chrono::milliseconds;

v1::PullHeader::Outcome PullOutcomeToProto(PullOutcome outcome) {
  switch (outcome) {
    case PullOutcome::kParameters:
      return v1::PullHeader::PARAMETERS;
    case PullOutcome::kRunFinished:
      return v1::PullHeader::RUN_FINISHED;
    case PullOutcome::kNotYet:
      break;
  }
  return v1::PullHeader::NOT_YET;
}

absl::StatusOr<PullOutcome> PullOutcomeFromProto(v1::PullHeader::Outcome outcome) {
  switch (outcome) {
    case v1::PullHeader::PARAMETERS:
      return PullOutcome::kParameters;
    case v1::PullHeader::NOT_YET:
      return PullOutcome::kNotYet;
    case v1::PullHeader::RUN_FINISHED:
      return PullOutcome::kRunFinished;
    default:
      return BadReply(absl::StrFormat("pull outcome %d", static_cast<int>(outcome)));
  }
}

}  // namespace

v1::PullRequest PullCallToProto(const MemberRef& member, const PullCall& call) {
  v1::PullRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  request.set_fragment(call.fragment.value());
  if (call.after.has_value()) request.set_after_version(call.after->value());
  const Duration wait = std::min<Duration>(call.wait, milliseconds(kMaxPullWaitMs));
  request.set_wait_ms(static_cast<uint32_t>(std::chrono::duration_cast<milliseconds>(wait).count()));
  if (call.have.has_value()) request.set_have_version(call.have->value());
  if (call.zstd) request.add_accepts(v1::COMPRESSION_ZSTD);
  return request;
}

absl::StatusOr<PullCall> PullCallFromProto(const v1::PullRequest& request) {
  if (request.wait_ms() > kMaxPullWaitMs) {
    return BadField("wait_ms", absl::StrFormat("%d is above the bound of %d; wait less and call again",
                                               request.wait_ms(), kMaxPullWaitMs));
  }
  PullCall call;
  call.fragment = FragmentId(request.fragment());
  if (request.has_after_version()) call.after = Version(request.after_version());
  call.wait = milliseconds(request.wait_ms());
  if (request.has_have_version()) call.have = Version(request.have_version());
  call.zstd = std::ranges::find(request.accepts(), v1::COMPRESSION_ZSTD) != request.accepts().end();
  return call;
}

v1::PullRange PullPartToProto(const PullPart& part) {
  v1::PullRange range;
  range.set_version(part.version.value());
  if (part.delta_base.has_value()) range.set_delta_base(part.delta_base->value());
  range.set_first_byte(part.first_byte);
  range.set_end_byte(part.end_byte);
  return range;
}

absl::StatusOr<std::optional<PullPart>> PullPartFromProto(const v1::PullRequest& request) {
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

v1::PullHeader PullReplyToProto(const PullReply& reply) {
  v1::PullHeader header;
  header.set_outcome(PullOutcomeToProto(reply.outcome));
  header.set_state(RunStateToProto(reply.state));
  header.set_waiting_for(reply.waiting_for);
  if (reply.outcome != PullOutcome::kParameters) return header;
  header.set_epoch(reply.epoch.value());
  header.set_version(reply.version.value());
  header.set_codec(CodecToProto(reply.codec));
  header.set_elements(reply.elements);
  header.set_payload_bytes(reply.payload_bytes);
  *header.mutable_published() = ContentHashToProto(reply.published);
  if (reply.delta_base.has_value()) {
    header.set_delta_base(reply.delta_base->value());
    header.set_head_version(reply.head.value());
  }
  if (reply.version == reply.head) *header.mutable_plan() = RoundPlanToProto(reply.plan);
  header.set_first_byte(reply.first_byte);
  header.set_end_byte(reply.end_byte);
  return header;
}

absl::StatusOr<PullReply> PullReplyFromProto(const v1::PullHeader& header) {
  PullReply reply;
  reply.epoch = Epoch(header.epoch());
  reply.version = Version(header.version());
  reply.published = ContentHashFromProto(header.published());
  ATOLL_ASSIGN_OR_RETURN(reply.plan, RoundPlanFromProto(header.plan()));
  reply.state = RunStateFromProto(header.state());
  reply.waiting_for = header.waiting_for();
  ATOLL_ASSIGN_OR_RETURN(reply.outcome, PullOutcomeFromProto(header.outcome()));
  if (reply.outcome != PullOutcome::kParameters) return reply;
  ATOLL_ASSIGN_OR_RETURN(reply.codec, CodecFromProto(header.codec()));
  reply.elements = header.elements();
  reply.payload_bytes = header.payload_bytes();
  reply.head = reply.version;
  if (header.has_delta_base()) {
    reply.delta_base = Version(header.delta_base());
    reply.head = Version(header.head_version());
  }
  reply.first_byte = header.first_byte();
  reply.end_byte = header.end_byte();
  return reply;
}

}  // namespace atl
