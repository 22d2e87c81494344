#include "client/library/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace atl::library {
namespace {

using Milliseconds = std::chrono::milliseconds;

Result Nonsense() { return Failure(ATL_INTERNAL, "the engine's message makes no sense: no snapshot"); }

}  // namespace

Snapshot::Snapshot(std::unique_ptr<EngineProcess> engine)
    : process_(::getpid()), engine_(std::move(engine)) {}

Result Snapshot::Open(std::vector<ipc::Option> options, std::unique_ptr<Snapshot>& snapshot) {
  std::unique_ptr<EngineProcess> engine;
  Result started = EngineProcess::Start(options, engine);
  if (!started.ok()) return started;
  std::erase_if(options, [](const ipc::Option& option) {
    return option.name == "engine" || option.name == "log-file";
  });
  const ipc::Hello hello{
      .snapshot = 1, .caller_pid = ::getpid(), .options = std::move(options), .tensors = {}};
  Result greeted = engine->Greet(hello);
  if (!greeted.ok()) return greeted;
  snapshot.reset(new Snapshot(std::move(engine)));
  return {};
}

Result Snapshot::Wait(double timeout_seconds) {
  if (::getpid() != process_) {
    return Failure(ATL_FAILED_PRECONDITION,
                   Text("atl_snapshot_wait: process %d opened this snapshot, and this is a fork of it; call "
                        "atl_snapshot_open here",
                        static_cast<int>(process_)));
  }
  if (result_.has_value()) return *result_;
  ipc::MessageType type{};
  std::string body;
  Result received = engine_->Receive(TimeoutOf(timeout_seconds), type, body);
  if (received.code == ATL_DEADLINE_EXCEEDED)
    return Failure(ATL_DEADLINE_EXCEEDED, "the version is not there yet; call atl_snapshot_wait again");
  result_ = received.ok() ? Take(type, body) : received;
  return *result_;
}

Result Snapshot::Take(ipc::MessageType type, const std::string& body) {
  if (type == ipc::MessageType::kRefused) {
    const auto refused = ipc::DecodeRefused(body);
    if (!refused.has_value()) return Nonsense();
    return Failure(refused->code == ATL_OK ? ATL_UNKNOWN : refused->code, refused->message);
  }
  if (type != ipc::MessageType::kSnapshot) return Nonsense();
  engine_->AwaitEnd(Milliseconds(5000));
  return TakeFacts(body);
}

Result Snapshot::TakeFacts(const std::string& body) {
  auto facts = ipc::DecodeSnapshot(body);
  if (!facts.has_value()) return Nonsense();
  uint64_t end = 0;
  for (size_t i = 0; i < facts->tensors.size(); ++i) {
    const ipc::Piece& piece = facts->pieces[i];
    uint64_t elements = 1;
    for (const int64_t size : facts->tensors[i].shape) elements *= static_cast<uint64_t>(size);
    if (piece.elements != elements || piece.offset > UINT64_MAX / 8 - elements) return Nonsense();
    end = std::max(end, piece.offset + elements);
  }
  if (end > UINT64_MAX / sizeof(float) || !engine_->values().Map(end * sizeof(float))) return Nonsense();
  facts_ = *std::move(facts);
  return {};
}

std::span<const float> Snapshot::values(size_t index) const {
  const ipc::Piece& piece = facts_.pieces[index];
  return engine_->values().floats().subspan(piece.offset, piece.elements);
}

}  // namespace atl::library
