#include "protos/wire/push.h"

#include <string>

#include "common/rejection_reason.h"
#include "common/status_detail.h"
#include "protos/wire/codec.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

v1::GetPushStatusReply::State PushStageToProto(PushStage stage) {
  switch (stage) {
    case PushStage::kPartial:
      return v1::GetPushStatusReply::PARTIAL;
    case PushStage::kAccepted:
      return v1::GetPushStatusReply::ACCEPTED;
    case PushStage::kCommitted:
      return v1::GetPushStatusReply::COMMITTED;
    case PushStage::kMissed:
      return v1::GetPushStatusReply::MISSED;
    case PushStage::kUnknown:
      break;
  }
  return v1::GetPushStatusReply::UNKNOWN;
}

PushStage PushStageFromProto(v1::GetPushStatusReply::State state) {
  switch (state) {
    case v1::GetPushStatusReply::PARTIAL:
      return PushStage::kPartial;
    case v1::GetPushStatusReply::ACCEPTED:
      return PushStage::kAccepted;
    case v1::GetPushStatusReply::COMMITTED:
      return PushStage::kCommitted;
    case v1::GetPushStatusReply::MISSED:
      return PushStage::kMissed;
    default:
      return PushStage::kUnknown;
  }
}

}  // namespace

v1::PushRef PushKeyToProto(const PushKey& key) {
  v1::PushRef ref;
  ref.set_fragment(key.fragment.value());
  ref.set_base_version(key.base.value());
  ref.set_sequence(key.sequence);
  return ref;
}

PushKey PushKeyFromProto(const v1::PushRef& ref) {
  return {.fragment = FragmentId(ref.fragment()),
          .base = Version(ref.base_version()),
          .sequence = ref.sequence()};
}

v1::PushHeader PushHeaderToProto(const MemberRef& member, const PushHeader& header) {
  v1::PushHeader message;
  *message.mutable_worker() = MemberRefToProto(member);
  message.set_fragment(header.key.fragment.value());
  message.set_base_version(header.key.base.value());
  message.set_sequence(header.key.sequence);
  message.set_codec(CodecToProto(header.codec));
  message.set_payload_bytes(header.payload_bytes);
  message.set_payload_crc32c(header.payload_crc32c);
  message.set_tokens(header.tokens);
  message.set_steps(header.steps);
  if (header.partition.has_value()) message.set_partition(*header.partition);
  message.set_samples_consumed(header.samples_consumed);
  message.set_mean_loss(header.mean_loss);
  return message;
}

absl::StatusOr<PushHeader> PushHeaderFromProto(const v1::PushHeader& message) {
  const absl::StatusOr<CodecKind> codec = CodecFromProto(message.codec());
  if (!codec.ok()) {
    return WithDetail(codec.status(),
                      {std::string(RejectionReasonName(RejectionReason::kWrongCodec)), {}, std::nullopt});
  }
  PushHeader header;
  header.key = {.fragment = FragmentId(message.fragment()),
                .base = Version(message.base_version()),
                .sequence = message.sequence()};
  header.codec = *codec;
  header.payload_bytes = message.payload_bytes();
  header.payload_crc32c = message.payload_crc32c();
  header.tokens = message.tokens();
  header.steps = message.steps();
  if (message.has_partition()) header.partition = message.partition();
  header.samples_consumed = message.samples_consumed();
  header.mean_loss = message.mean_loss();
  return header;
}

v1::PushReply PushReplyToProto(const PushReply& reply) {
  v1::PushReply message;
  message.set_duplicate(reply.duplicate);
  message.set_head_version(reply.head.value());
  message.set_arrived(reply.arrived);
  message.set_expected(reply.expected);
  return message;
}

PushReply PushReplyFromProto(const v1::PushReply& message) {
  return {.duplicate = message.duplicate(),
          .head = Version(message.head_version()),
          .arrived = message.arrived(),
          .expected = message.expected()};
}

v1::GetPushStatusRequest PushStatusCallToProto(const MemberRef& member, const PushKey& key) {
  v1::GetPushStatusRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  *request.mutable_push() = PushKeyToProto(key);
  return request;
}

v1::GetPushStatusReply PushStatusReplyToProto(const PushStatusReply& reply) {
  v1::GetPushStatusReply message;
  message.set_state(PushStageToProto(reply.stage));
  message.set_received_bytes(reply.received_bytes);
  message.set_head_version(reply.head.value());
  return message;
}

PushStatusReply PushStatusReplyFromProto(const v1::GetPushStatusReply& message) {
  return {.stage = PushStageFromProto(message.state()),
          .received_bytes = message.received_bytes(),
          .head = Version(message.head_version())};
}

}  // namespace atl
