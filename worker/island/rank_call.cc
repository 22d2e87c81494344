#include "worker/island/rank_call.h"

#include "client/ipc/encoding.h"

namespace atl {
namespace {

using ipc::Decoder;
using ipc::Encoder;

constexpr size_t kSlotBytes = 22;  // tensor:u32, offset:u64, elements:u64, embedding:u8, averaged:u8

void EncodeFragment(const FragmentLayout& fragment, Encoder& out) {
  out.Number(fragment.id.value());
  out.Number(fragment.elements);
  out.Number(static_cast<uint32_t>(fragment.slots.size()));
  for (const TensorSlot& slot : fragment.slots) {
    out.Number(slot.tensor);
    out.Number(slot.offset);
    out.Number(slot.elements);
    out.Number(static_cast<uint8_t>(slot.embedding));
    out.Number(static_cast<uint8_t>(slot.averaged));
  }
}

FragmentLayout DecodeFragment(Decoder& in) {
  FragmentLayout fragment;
  fragment.id = FragmentId(in.Number<uint32_t>());
  fragment.elements = in.Number<uint64_t>();
  fragment.slots.resize(in.Count(kSlotBytes));
  for (TensorSlot& slot : fragment.slots) {
    slot.tensor = in.Number<uint32_t>();
    slot.offset = in.Number<uint64_t>();
    slot.elements = in.Number<uint64_t>();
    slot.embedding = in.Number<uint8_t>() != 0;
    slot.averaged = in.Number<uint8_t>() != 0;
  }
  return fragment;
}

void EncodeState(const ReplicaState& state, Encoder& out) {
  out.Text(state.kind);
  out.Number(state.optimizer_steps);
  out.Number(state.partition);
  out.Number(state.partitions);
  out.Number(state.samples_consumed);
  out.Text(state.random);
}

ReplicaState DecodeState(Decoder& in) {
  ReplicaState state;
  state.kind = in.Text();
  state.optimizer_steps = in.Number<uint64_t>();
  state.partition = in.Number<uint32_t>();
  state.partitions = in.Number<uint32_t>();
  state.samples_consumed = in.Number<uint64_t>();
  state.random = in.Text();
  return state;
}

void DecodeFields(Decoder& in, RankCall& call) {
  switch (call.kind) {
    case RankCallKind::kBuild:
      call.config = in.Text();
      call.has_data = in.Number<uint8_t>() != 0;
      [[fallthrough]];
    case RankCallKind::kSetPartition:
      call.partition = in.Number<uint32_t>();
      call.partitions = in.Number<uint32_t>();
      break;
    case RankCallKind::kWriteFragment:
      call.fragment = DecodeFragment(in);
      break;
    case RankCallKind::kInnerStep:
      call.learning_rate = in.Number<double>();
      break;
    case RankCallKind::kSeek:
      call.position = in.Number<uint64_t>();
      break;
    case RankCallKind::kLoadState:
      call.state = DecodeState(in);
      break;
    case RankCallKind::kEvaluate:
      call.batches = in.Number<uint32_t>();
      break;
    case RankCallKind::kDrop:
    case RankCallKind::kSaveState:
      break;
  }
}

}  // namespace

std::string EncodeRankCall(const RankCall& call) {
  Encoder out;
  out.Number(static_cast<uint8_t>(call.kind));
  switch (call.kind) {
    case RankCallKind::kBuild:
      out.Text(call.config);
      out.Number(static_cast<uint8_t>(call.has_data));
      [[fallthrough]];
    case RankCallKind::kSetPartition:
      out.Number(call.partition);
      out.Number(call.partitions);
      break;
    case RankCallKind::kWriteFragment:
      EncodeFragment(call.fragment, out);
      break;
    case RankCallKind::kInnerStep:
      out.Number(call.learning_rate);
      break;
    case RankCallKind::kSeek:
      out.Number(call.position);
      break;
    case RankCallKind::kLoadState:
      EncodeState(call.state, out);
      break;
    case RankCallKind::kEvaluate:
      out.Number(call.batches);
      break;
    case RankCallKind::kDrop:
    case RankCallKind::kSaveState:
      break;
  }
  return out.Take();
}

absl::StatusOr<RankCall> DecodeRankCall(std::string_view bytes) {
  Decoder in(bytes);
  RankCall call;
  const auto kind = in.Number<uint8_t>();
  if (kind < static_cast<uint8_t>(RankCallKind::kBuild) ||
      kind > static_cast<uint8_t>(RankCallKind::kEvaluate)) {
    return absl::InvalidArgumentError("rank 0 asks for something that this program does not know");
  }
  call.kind = static_cast<RankCallKind>(kind);
  DecodeFields(in, call);
  if (!in.Finished()) return absl::InvalidArgumentError("a call of rank 0 is too short or too long");
  return call;
}

std::string EncodeRankReply(const RankReply& reply) {
  Encoder out;
  out.Number(static_cast<uint32_t>(reply.status.code()));
  out.Text(std::string(reply.status.message()));
  out.Text(reply.manifest_hash);
  return out.Take();
}

absl::StatusOr<RankReply> DecodeRankReply(std::string_view bytes) {
  Decoder in(bytes);
  const auto code = in.Number<uint32_t>();
  const std::string message = in.Text();
  RankReply reply{.manifest_hash = in.Text()};
  if (!in.Finished()) return absl::InvalidArgumentError("a rank's reply is too short or too long");
  if (code != 0) reply.status = absl::Status(static_cast<absl::StatusCode>(code), message);
  return reply;
}

}  // namespace atl
