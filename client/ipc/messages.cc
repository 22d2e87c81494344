#include "client/ipc/messages.h"

#include "client/ipc/encoding.h"

namespace atl::ipc {
namespace {

constexpr size_t kOptionBytes = 8;   // two texts, at least
constexpr size_t kTensorBytes = 12;  // name, rank, flags
constexpr size_t kPieceBytes = 20;

void PutTensors(Encoder& out, const std::vector<Tensor>& tensors) {
  out.Number(static_cast<uint32_t>(tensors.size()));
  for (const Tensor& tensor : tensors) {
    out.Text(tensor.name);
    out.Number(static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t size : tensor.shape) out.Number(size);
    out.Number(tensor.flags);
  }
}

/// False: beyond the bounds.
bool TakeTensors(Decoder& in, std::vector<Tensor>& tensors) {
  const uint32_t count = in.Count(kTensorBytes);
  if (count > kMaxTensors) return false;
  for (uint32_t i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.name = in.Text();
    const auto rank = in.Number<uint32_t>();
    if (rank > kMaxRank || tensor.name.size() > kMaxName) return false;
    for (uint32_t d = 0; d < rank; ++d) tensor.shape.push_back(in.Number<int64_t>());
    tensor.flags = in.Number<uint32_t>();
    tensors.push_back(std::move(tensor));
  }
  return true;
}

void PutPieces(Encoder& out, const std::vector<Piece>& pieces) {
  out.Number(static_cast<uint32_t>(pieces.size()));
  for (const Piece& piece : pieces) {
    out.Number(piece.tensor);
    out.Number(piece.offset);
    out.Number(piece.elements);
  }
}

bool TakePieces(Decoder& in, std::vector<Piece>& pieces) {
  const uint32_t count = in.Count(kPieceBytes);
  if (count > kMaxTensors) return false;
  for (uint32_t i = 0; i < count; ++i) {
    Piece piece;
    piece.tensor = in.Number<uint32_t>();
    piece.offset = in.Number<uint64_t>();
    piece.elements = in.Number<uint64_t>();
    pieces.push_back(piece);
  }
  return true;
}

}  // namespace

std::string Encode(const Hello& hello) {
  Encoder out;
  out.Number(hello.version);
  out.Number(hello.snapshot);
  out.Number(hello.caller_pid);
  out.Number(static_cast<uint32_t>(hello.options.size()));
  for (const Option& option : hello.options) {
    out.Text(option.name);
    out.Text(option.value);
  }
  PutTensors(out, hello.tensors);
  return out.Take();
}

std::optional<uint32_t> VersionOfHello(std::string_view bytes) {
  if (bytes.size() < sizeof(uint32_t)) return std::nullopt;
  return Decoder(bytes).Number<uint32_t>();
}

std::optional<Hello> DecodeHello(std::string_view bytes) {
  Decoder in(bytes);
  Hello hello;
  hello.version = in.Number<uint32_t>();
  hello.snapshot = in.Number<uint8_t>();
  hello.caller_pid = in.Number<int64_t>();
  const uint32_t options = in.Count(kOptionBytes);
  for (uint32_t i = 0; i < options; ++i) {
    Option option;
    option.name = in.Text();
    option.value = in.Text();
    hello.options.push_back(std::move(option));
  }
  if (!TakeTensors(in, hello.tensors) || !in.Finished()) return std::nullopt;
  return hello;
}

std::string Encode(const Refused& refused) {
  Encoder out;
  out.Number(refused.code);
  out.Text(refused.message);
  return out.Take();
}

std::optional<Refused> DecodeRefused(std::string_view bytes) {
  Decoder in(bytes);
  Refused refused;
  refused.code = in.Number<int32_t>();
  refused.message = in.Text();
  if (!in.Finished()) return std::nullopt;
  return refused;
}

std::string Encode(const Event& event) {
  Encoder out;
  out.Number(event.sequence);
  out.Number(event.kind);
  out.Number(event.learning_rate);
  out.Number(event.version);
  out.Number(event.local_step);
  out.Number(event.partition);
  out.Number(event.partitions);
  out.Number(event.samples);
  out.Number(event.state_bytes);
  out.Number(event.max_batches);
  out.Number(event.exit_code);
  out.Number(event.end_code);
  out.Number(event.end_reason);
  out.Text(event.text);
  PutPieces(out, event.pieces);
  return out.Take();
}

std::optional<Event> DecodeEvent(std::string_view bytes) {
  Decoder in(bytes);
  Event event;
  event.sequence = in.Number<uint64_t>();
  event.kind = in.Number<uint32_t>();
  event.learning_rate = in.Number<double>();
  event.version = in.Number<uint64_t>();
  event.local_step = in.Number<uint64_t>();
  event.partition = in.Number<uint32_t>();
  event.partitions = in.Number<uint32_t>();
  event.samples = in.Number<uint64_t>();
  event.state_bytes = in.Number<uint64_t>();
  event.max_batches = in.Number<uint32_t>();
  event.exit_code = in.Number<int32_t>();
  event.end_code = in.Number<int32_t>();
  event.end_reason = in.Number<uint32_t>();
  event.text = in.Text();
  if (!TakePieces(in, event.pieces) || !in.Finished()) return std::nullopt;
  return event;
}

std::string Encode(const Answer& answer) {
  Encoder out;
  out.Number(answer.sequence);
  out.Number(answer.outcome);
  out.Text(answer.message);
  out.Number(answer.loss);
  out.Number(answer.gradient_norm);
  out.Number(answer.data_seconds);
  out.Number(answer.tokens);
  out.Number(answer.samples);
  out.Number(answer.optimizer_steps);
  out.Number(answer.state_bytes);
  out.Text(answer.state_kind);
  return out.Take();
}

std::optional<Answer> DecodeAnswer(std::string_view bytes) {
  Decoder in(bytes);
  Answer answer;
  answer.sequence = in.Number<uint64_t>();
  answer.outcome = in.Number<uint32_t>();
  answer.message = in.Text();
  answer.loss = in.Number<double>();
  answer.gradient_norm = in.Number<double>();
  answer.data_seconds = in.Number<double>();
  answer.tokens = in.Number<uint64_t>();
  answer.samples = in.Number<uint64_t>();
  answer.optimizer_steps = in.Number<uint64_t>();
  answer.state_bytes = in.Number<uint64_t>();
  answer.state_kind = in.Text();
  if (!in.Finished()) return std::nullopt;
  return answer;
}

std::string Encode(const Snapshot& snapshot) {
  Encoder out;
  out.Number(snapshot.version);
  out.Text(snapshot.run_json);
  PutTensors(out, snapshot.tensors);
  PutPieces(out, snapshot.pieces);
  return out.Take();
}

std::optional<Snapshot> DecodeSnapshot(std::string_view bytes) {
  Decoder in(bytes);
  Snapshot snapshot;
  snapshot.version = in.Number<uint64_t>();
  snapshot.run_json = in.Text();
  if (!TakeTensors(in, snapshot.tensors) || !TakePieces(in, snapshot.pieces)) return std::nullopt;
  if (!in.Finished() || snapshot.pieces.size() != snapshot.tensors.size()) return std::nullopt;
  return snapshot;
}

}  // namespace atl::ipc
