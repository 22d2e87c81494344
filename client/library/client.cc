#include "client/library/client.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace atl::library {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kOpenWait{120'000};  // for a state directory on a slow disk
constexpr Milliseconds kCloseWait{5'000};
constexpr Milliseconds kAnswerWait{
    30'000};  // until the engine's socket has room: it always has, unless frozen
constexpr size_t kMaxReason = size_t{16} << 10;
constexpr size_t kMaxStateKind = size_t{64} << 10;
constexpr uint64_t kMaxState = uint64_t{1} << 40;

const char* NameOf(uint32_t kind) {
  constexpr const char* kNames[] = {"",     "JOINED", "READ", "WRITE",    "STEP", "PARTITION",
                                    "SEEK", "SAVE",   "LOAD", "EVALUATE", "END"};
  return kind < std::size(kNames) ? kNames[kind] : "";
}

uint64_t ElementsOf(const ipc::Tensor& tensor) {
  uint64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= static_cast<uint64_t>(size);
  return elements;
}

Result Nonsense(const char* what) {
  return Failure(ATL_INTERNAL, Text("the engine's message makes no sense: %s", what));
}

std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

/// At most kMaxReason bytes of it. A cut ends with "..." and never within a character.
std::string ShortText(const char* text) {
  if (text == nullptr) return "";
  const size_t bytes = ::strnlen(text, kMaxReason + 1);
  if (bytes <= kMaxReason) return {text, bytes};
  size_t cut = kMaxReason - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(text, cut) + "...";
}

}  // namespace

Client::Client(std::unique_ptr<EngineProcess> engine, const std::vector<ipc::Tensor>& tensors)
    : process_(::getpid()), engine_(std::move(engine)), page_(engine_->status().bytes()) {
  for (const ipc::Tensor& tensor : tensors) elements_.push_back(ElementsOf(tensor));
}

Result Client::Open(std::vector<ipc::Option> options, std::vector<ipc::Tensor> tensors,
                    std::unique_ptr<Client>& client) {
  std::unique_ptr<EngineProcess> engine;
  Result started = EngineProcess::Start(options, engine);
  if (!started.ok()) return started;
  // The library's own.
  std::erase_if(options, [](const ipc::Option& option) {
    return option.name == "engine" || option.name == "log-file";
  });
  const ipc::Hello hello{
      .caller_pid = ::getpid(), .options = std::move(options), .tensors = std::move(tensors)};
  Result greeted = engine->Greet(hello);
  if (!greeted.ok()) return greeted;
  ipc::MessageType type{};
  std::string body;
  Result received = engine->Receive(kOpenWait, type, body);
  if (received.code == ATL_DEADLINE_EXCEEDED)
    return Failure(ATL_INTERNAL, "the engine did not check the options within two minutes");
  if (!received.ok()) return received;
  if (type == ipc::MessageType::kRefused) {
    const auto refused = ipc::DecodeRefused(body);
    if (!refused.has_value()) return Nonsense("a refusal");
    engine->AwaitEnd(kCloseWait);
    return Failure(refused->code == ATL_OK ? ATL_UNKNOWN : refused->code, refused->message);
  }
  if (type != ipc::MessageType::kReady) return Nonsense("it is not ready");
  client.reset(new Client(std::move(engine), hello.tensors));
  return {};
}

void Client::Close() {
  if (::getpid() != process_ || closed_.exchange(true)) return;
  // Fails when the engine is about to end anyway, or reads nothing.
  static_cast<void>(engine_->Send(ipc::MessageType::kStop, "", Milliseconds(0)));
  if (!engine_->AwaitEnd(kCloseWait)) engine_->Kill();
}

Result Client::CheckProcess(const char* call) const {
  if (::getpid() == process_) return {};
  return Failure(ATL_FAILED_PRECONDITION,
                 Text("%s: this process is a fork of the one that opened the client (process %d), and only "
                      "that one may use "
                      "it; call atl_close here, and open a client of its own with another state-dir and name",
                      call, static_cast<int>(process_)));
}

Result Client::Order(const char* call, std::atomic<Asked>& order) {
  Result process = CheckProcess(call);
  if (!process.ok()) return process;
  Asked expected = Asked::kNo;
  order.compare_exchange_strong(expected, Asked::kYes);
  SendOrders();
  return {};
}

void Client::SendOrders() {
  const auto send = [this](std::atomic<Asked>& order, ipc::MessageType type) {
    // Once is enough. So an engine that reads nothing cannot fill the socket, and nothing waits for it.
    Asked expected = Asked::kYes;
    if (!order.compare_exchange_strong(expected, Asked::kSent)) return;
    // An engine that has ended wants no order; atl_next says why it ended.
    if (!ended_ && !engine_->Send(type, "", Milliseconds(0))) order = Asked::kYes;
  };
  send(drain_, ipc::MessageType::kDrain);
  send(stop_, ipc::MessageType::kStop);
}

Result Client::Next(double timeout_seconds, atl_event& event) {
  Result process = CheckProcess("atl_next");
  if (!process.ok()) return process;
  if (event.size < offsetof(atl_event, pieces))
    return Failure(ATL_INVALID_ARGUMENT, "atl_next: set event->size to sizeof(atl_event) first");
  if (unanswered_) {
    return Failure(ATL_FAILED_PRECONDITION,
                   Text("atl_next: %s is not answered yet; call atl_answer first", NameOf(current_.kind)));
  }
  if (ended_) {
    return Failure(ATL_FAILED_PRECONDITION,
                   Text("atl_next: the worker has left (%s); call atl_close", current_.text.c_str()));
  }
  if (!undelivered_.ok()) return undelivered_;
  SendOrders();
  ipc::MessageType type{};
  std::string body;
  Result received = engine_->Receive(TimeoutOf(timeout_seconds), type, body);
  // What an event points to ends with the client.
  if (closed_) return Failure(ATL_FAILED_PRECONDITION, "atl_next: another thread closed the client");
  if (!received.ok()) return received;
  auto said = type == ipc::MessageType::kEvent ? ipc::DecodeEvent(body) : std::nullopt;
  if (!said.has_value()) return Nonsense("no event");
  Result taken = Take(*std::move(said));
  if (!taken.ok()) return taken;
  const uint32_t size = event.size;
  std::memcpy(&event, &event_, std::min<size_t>(size, sizeof(event_)));
  event.size = size;
  return {};
}

Result Client::TakePieces() {
  pieces_.clear();
  uint64_t end = 0;
  for (const ipc::Piece& piece : current_.pieces) {
    if (piece.tensor >= elements_.size() || piece.elements != elements_[piece.tensor])
      return Nonsense("a tensor");
    if (piece.offset > UINT64_MAX / 8 - piece.elements) return Nonsense("an offset");
    end = std::max(end, piece.offset + piece.elements);
  }
  if (end > UINT64_MAX / sizeof(float) || !engine_->values().Map(end * sizeof(float)))
    return Failure(ATL_RESOURCE_EXHAUSTED, "the memory of the parameters cannot be mapped");
  const std::span<float> values = engine_->values().floats();
  for (const ipc::Piece& piece : current_.pieces) {
    pieces_.push_back({.tensor = piece.tensor,
                       .reserved = 0,
                       .elements = piece.elements,
                       .values = values.data() + piece.offset});
  }
  return {};
}

Result Client::Take(ipc::Event event) {
  if (NameOf(event.kind)[0] == '\0') return Nonsense("an unknown event");
  current_ = std::move(event);
  event_ = {};
  event_.kind = current_.kind;
  event_.text = "";
  Result pieces = TakePieces();
  if (!pieces.ok()) return pieces;
  event_.pieces = pieces_.data();
  event_.piece_count = pieces_.size();
  event_.learning_rate = current_.learning_rate;
  event_.version = current_.version;
  event_.local_step = current_.local_step;
  event_.partition = current_.partition;
  event_.partitions = current_.partitions;
  event_.samples = current_.samples;
  event_.max_batches = current_.max_batches;
  if (current_.kind == ATL_EVENT_LOAD) {
    if (!engine_->state().Map(current_.state_bytes)) return Nonsense("a state that is not there");
    event_.state = engine_->state().bytes().data();
    event_.state_bytes = current_.state_bytes;
  }
  if (current_.kind == ATL_EVENT_JOINED) run_json_ = current_.text;
  if (current_.kind == ATL_EVENT_END) {
    event_.exit_code = current_.exit_code;
    event_.end_code = current_.end_code;
    event_.end_reason = current_.end_reason;
    event_.text = current_.text.c_str();
    ended_ = true;
  } else {
    unanswered_ = true;
  }
  return {};
}

Result Client::CheckAnswer(const atl_answer_fields& answer) const {
  const uint32_t kind = current_.kind;
  const bool allowed =
      answer.outcome == ATL_DONE || answer.outcome == ATL_FAILED ||
      (answer.outcome == ATL_NOT_FINITE && (kind == ATL_EVENT_STEP || kind == ATL_EVENT_EVALUATE)) ||
      (answer.outcome == ATL_DECLINED && (kind == ATL_EVENT_STEP || kind == ATL_EVENT_EVALUATE));
  if (!allowed) {
    return Failure(ATL_INVALID_ARGUMENT, Text("atl_answer: %s cannot have outcome %u", NameOf(kind),
                                              static_cast<unsigned>(answer.outcome)));
  }
  if (answer.state_kind != nullptr && ::strnlen(answer.state_kind, kMaxStateKind + 1) > kMaxStateKind) {
    return Failure(
        ATL_INVALID_ARGUMENT,
        Text("atl_answer: state_kind has more than %zu bytes; name the optimizer by a shorter text",
             kMaxStateKind));
  }
  if (answer.outcome != ATL_DONE) return {};
  if ((kind == ATL_EVENT_STEP || kind == ATL_EVENT_EVALUATE) && answer.tokens == 0)
    return Failure(ATL_INVALID_ARGUMENT,
                   Text("atl_answer: %s uses at least one token; tokens is 0", NameOf(kind)));
  if (kind != ATL_EVENT_SAVE) return {};
  if (answer.state_bytes > kMaxState || (answer.state == nullptr && answer.state_bytes > 0))
    return Failure(ATL_INVALID_ARGUMENT, "atl_answer: state_bytes is above 1 TiB, or state is null");
  return {};
}

Result Client::Answer(const atl_answer_fields& answer) {
  Result process = CheckProcess("atl_answer");
  if (!process.ok()) return process;
  if (!unanswered_)
    return Failure(ATL_FAILED_PRECONDITION, "atl_answer: there is no event to answer; call atl_next first");
  Result checked = CheckAnswer(answer);
  if (!checked.ok()) return checked;
  if (current_.kind == ATL_EVENT_SAVE && answer.outcome == ATL_DONE && answer.state_bytes > 0) {
    if (!engine_->state().Grow(answer.state_bytes)) {
      return Failure(ATL_RESOURCE_EXHAUSTED,
                     Text("atl_answer: no memory for %llu bytes of state: %s",
                          static_cast<unsigned long long>(answer.state_bytes), std::strerror(errno)));
    }
    std::memcpy(engine_->state().bytes().data(), answer.state, answer.state_bytes);
  }
  const ipc::Answer message{.sequence = current_.sequence,
                            .outcome = answer.outcome,
                            .message = ShortText(answer.message),
                            .loss = answer.loss,
                            .gradient_norm = answer.gradient_norm,
                            .data_seconds = answer.data_seconds,
                            .tokens = answer.tokens,
                            .samples = answer.samples,
                            .optimizer_steps = answer.optimizer_steps,
                            .state_bytes = answer.state_bytes,
                            .state_kind = TextOf(answer.state_kind)};
  unanswered_ = false;
  if (engine_->Send(ipc::MessageType::kAnswer, ipc::Encode(message), kAnswerWait)) return {};
  // An engine that has ended is found by the next atl_next, which says why.
  if (engine_->AwaitEnd(kCloseWait)) return {};
  engine_->Kill();
  undelivered_ =
      Failure(ATL_INTERNAL, Text("atl_answer: the engine did not take the answer to %s within %lld "
                                 "s, and was ended; open a new client with the same options",
                                 NameOf(current_.kind), static_cast<long long>(kAnswerWait.count() / 1000)));
  return undelivered_;
}

Result Client::Status(std::string& json) {
  Result process = CheckProcess("atl_status");
  if (!process.ok()) return process;
  const auto newest = page_.Read();
  const std::lock_guard<std::mutex> lock(status_mutex_);
  if (newest.has_value() && !newest->empty()) last_status_ = *newest;
  json = last_status_;
  return {};
}

}  // namespace atl::library
