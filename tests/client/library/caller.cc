#include "tests/client/library/caller.h"

#include <cstring>

namespace atl {
namespace {

constexpr uint64_t kTokensPerStep = 32;
constexpr uint64_t kSamplesPerStep = 2;

}  // namespace

Caller::Caller(const Manifest& manifest) : manifest_(manifest) {
  for (const TensorSpec& tensor : manifest_.tensors) values_.emplace_back(tensor.elements(), 0.0F);
}

atl_code Caller::Open(const Options& options) {
  std::vector<atl_option> given;
  for (const auto& [name, value] : options) given.push_back({name.c_str(), value.c_str()});
  std::vector<atl_tensor> tensors;
  for (const TensorSpec& tensor : manifest_.tensors) {
    tensors.push_back({.size = sizeof(atl_tensor),
                       .rank = static_cast<uint32_t>(tensor.shape.size()),
                       .name = tensor.name.c_str(),
                       .shape = tensor.shape.data(),
                       .flags = (tensor.embedding ? uint32_t{ATL_TENSOR_EMBEDDING} : 0U) |
                                (tensor.averaged ? uint32_t{ATL_TENSOR_AVERAGED} : 0U),
                       .reserved = 0});
  }
  return atl_open(given.data(), given.size(), tensors.data(), tensors.size(), &client_, &error_);
}

void Caller::Close() { atl_close(std::exchange(client_, nullptr)); }

atl_code Caller::Next(double timeout_seconds, atl_event& event) {
  event = {};
  event.size = sizeof(event);
  const atl_code code = atl_next(client_, timeout_seconds, &event, &error_);
  if (code == ATL_OK) ++seen_[event.kind];
  return code;
}

double Caller::Step(double learning_rate) {
  double loss = 0;
  uint64_t all = 0;
  for (std::vector<float>& tensor : values_) {
    for (float& value : tensor) {
      const float distance = value - 1.0F;
      loss += 0.5 * static_cast<double>(distance) * static_cast<double>(distance);
      value -= static_cast<float>(100 * learning_rate) * distance;
    }
    all += tensor.size();
  }
  return loss / static_cast<double>(all);
}

void Caller::Do(const atl_event& event, atl_answer_fields& answer) {
  for (uint64_t p = 0; p < event.piece_count; ++p) {
    const atl_piece& piece = event.pieces[p];
    float* const own = values_[piece.tensor].data();
    const bool read = event.kind == ATL_EVENT_READ;
    std::memcpy(read ? piece.values : own, read ? own : piece.values, piece.elements * sizeof(float));
  }
  switch (event.kind) {
    case ATL_EVENT_STEP:
      answer.loss = Step(event.learning_rate);
      ++steps_;
      samples_ += kSamplesPerStep;
      break;
    case ATL_EVENT_PARTITION:
      samples_ = 0;
      break;
    case ATL_EVENT_SEEK:
      samples_ = event.samples;
      break;
    case ATL_EVENT_SAVE:
      answer.state = state.data();
      answer.state_bytes = state.size();
      answer.state_kind = "quadratic";
      answer.optimizer_steps = steps_;
      break;
    case ATL_EVENT_LOAD:
      loaded_.assign(static_cast<const char*>(event.state), event.state_bytes);
      break;
    case ATL_EVENT_EVALUATE:
      answer.loss = Step(0);
      break;
    default:
      break;
  }
  answer.tokens = kTokensPerStep;
  answer.samples = samples_;
}

atl_code Caller::Answer(const atl_event& event) {
  atl_answer_fields answer = {};
  answer.size = sizeof(answer);
  Do(event, answer);
  if (amend) amend(event, answer);
  return atl_answer(client_, &answer, &error_);
}

CallerEnd Caller::RunToEnd(const std::function<void()>& between) {
  while (true) {
    atl_event event;
    atl_code code = Next(-1, event);
    if (code == ATL_OK && event.kind == ATL_EVENT_END) {
      return {.reason = event.end_reason,
              .code = event.end_code,
              .exit_code = event.exit_code,
              .text = event.text};
    }
    if (code == ATL_OK) code = Answer(event);
    if (code != ATL_OK) return {.failed = code, .message = error_.message};
    if (between) between();
  }
}

}  // namespace atl
