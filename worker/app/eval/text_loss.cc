#include "worker/app/eval/text_loss.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kWindowsAtOnce = 16;
constexpr uint32_t kUnknown = std::numeric_limits<uint32_t>::max();

}  // namespace

std::optional<TextWindow> WindowOf(uint64_t tokens, uint32_t context, uint32_t stride, uint64_t index) {
  const uint64_t from = index == 0 ? 1 : 1 + context + (index - 1) * stride;
  if (from >= tokens) return std::nullopt;
  const uint64_t end = std::min(tokens, from + (index == 0 ? context : stride));
  const uint64_t most = uint64_t{context} + 1;
  const uint64_t begin = end > most ? end - most : 0;
  return TextWindow{
      .begin = begin, .tokens = static_cast<size_t>(end - begin), .first = static_cast<size_t>(from - begin)};
}

absl::StatusOr<TextLoss> MeasureText(const TokenText& text, uint32_t stride, const Scorer& scorer,
                                     const std::function<void(std::span<const TokenId>)>& visit,
                                     const ScoreProgress& progress) {
  TextLoss loss;
  for (uint64_t index = 0;;) {
    std::vector<std::vector<TokenId>> windows;
    std::vector<ScoreRequest> requests;
    for (; windows.size() < kWindowsAtOnce; ++index) {
      const auto window = WindowOf(text.tokens, scorer.context, stride, index);
      if (!window) break;
      ATOLL_RETURN_IF_ERROR(text.read(window->begin, windows.emplace_back(window->tokens)));
      requests.push_back({.first = window->first});
    }
    if (windows.empty()) return loss;
    for (size_t i = 0; i < windows.size(); ++i) requests[i].tokens = windows[i];
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScores> scores, scorer.score(requests));
    for (size_t i = 0; i < windows.size(); ++i) {
      const std::vector<float>& found = scores[i].log_probabilities;
      loss.total = std::accumulate(found.begin(), found.end(), loss.total,
                                   [](double sum, float score) { return sum - score; });
      loss.tokens += found.size();
      if (visit) visit(std::span(windows[i]).subspan(requests[i].first));
    }
    progress(loss.tokens);
  }
}

TextBytes::TextBytes(const Tokenizer& tokenizer, std::span<const TokenId> endings)
    : tokenizer_(tokenizer), bytes_of_(tokenizer.vocabulary(), kUnknown) {
  for (const TokenId token : endings) {
    if (token < bytes_of_.size()) bytes_of_[token] = 0;
  }
}

void TextBytes::Add(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token >= bytes_of_.size()) continue;  // padding of the model's vocabulary
    uint32_t& bytes = bytes_of_[token];
    if (bytes == kUnknown) bytes = static_cast<uint32_t>(tokenizer_.Decode(std::span(&token, 1)).size());
    bytes_ += bytes;
  }
}

}  // namespace atl
