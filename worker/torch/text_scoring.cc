#include "worker/torch/text_scoring.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

// Of one batch. The logits of GPT-2's vocabulary take 0.2 GB for 1000 tokens.
constexpr int64_t kLogitsAtOnce = int64_t{1} << 26;  // 256 MiB in float32
constexpr int64_t kTokensAtOnce = 4096;

/// Tokens that the model reads: the last one is only predicted, unless the place after it is asked for.
/// Never none: a text of one token has no score without it.
size_t TokensRead(const ScoreRequest& request, const ScoreOptions& options, int64_t context) {
  const size_t whole = std::min(request.tokens.size(), static_cast<size_t>(context));
  return options.ranked > 0 ? whole : std::max<size_t>(1, request.tokens.size() - 1);
}

/// The log-probabilities of the text's places: [places, vocabulary], float32.
TokenScores ScoresOf(const ScoreRequest& request, const torch::Tensor& places, const ScoreOptions& options) {
  TokenScores scores;
  const auto wanted = static_cast<int64_t>(request.tokens.size() - request.first);
  if (wanted > 0) {
    const std::vector<int64_t> targets(request.tokens.begin() + static_cast<int64_t>(request.first),
                                       request.tokens.end());
    const torch::Tensor index = torch::tensor(targets, torch::kInt64).to(places.device()).unsqueeze(1);
    const torch::Tensor found =
        places.narrow(0, 0, wanted).gather(1, index).squeeze(1).to(torch::kCPU).contiguous();
    const auto* const values = found.data_ptr<float>();
    scores.log_probabilities.assign(values, values + wanted);
  }
  if (options.ranked == 0) return scores;
  const int64_t most = std::min<int64_t>(options.ranked, places.size(1));
  const auto [values, tokens] = places.topk(most, 1);
  const torch::Tensor likely = values.to(torch::kCPU).contiguous(), ids = tokens.to(torch::kCPU).contiguous();
  for (int64_t place = 0; place < likely.size(0); ++place) {
    std::vector<RankedToken>& ranked = scores.ranked.emplace_back();
    for (int64_t i = 0; i < most; ++i) {
      ranked.push_back({.token = static_cast<TokenId>(ids.data_ptr<int64_t>()[place * most + i]),
                        .log_probability = likely.data_ptr<float>()[place * most + i]});
    }
  }
  return scores;
}

}  // namespace

absl::Status CheckScoreRequest(const ScoreRequest& request, uint32_t context, uint32_t vocabulary) {
  const size_t size = request.tokens.size();
  if (size > size_t{context} + 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a text of %d tokens cannot be scored at once: the model sees %d and predicts one more", size,
        context));
  }
  if (request.first < 1 || request.first > size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a text of %d tokens has no score at token %d", size, request.first));
  }
  for (const TokenId token : request.tokens) {
    if (token < vocabulary) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("token %d is outside the model's vocabulary of %d", token, vocabulary));
  }
  return absl::OkStatus();
}

std::optional<std::vector<TokenScores>> ScoreTexts(const LanguageModel& model,
                                                   std::span<const ScoreRequest> requests,
                                                   const ScoreOptions& options, uint32_t vocabulary,
                                                   int64_t context, const torch::Device& device) {
  const torch::NoGradGuard no_grad;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto read = [&](size_t i) { return TokensRead(requests[i], options, context); };
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return read(a) > read(b); });
  std::vector<TokenScores> scores(requests.size());
  for (size_t begin = 0; begin < order.size();) {
    if (options.interrupted && options.interrupted()) return std::nullopt;
    const auto time = static_cast<int64_t>(read(order[begin]));
    const int64_t most =
        std::max<int64_t>(1, std::min(kTokensAtOnce / time, kLogitsAtOnce / (time * int64_t{vocabulary})));
    const auto rows = std::min<int64_t>(most, static_cast<int64_t>(order.size() - begin));
    torch::Tensor tokens = torch::zeros({rows, time}, torch::kInt64);
    for (int64_t row = 0; row < rows; ++row) {
      const size_t i = order[begin + static_cast<size_t>(row)];
      std::copy_n(requests[i].tokens.begin(), read(i), tokens.data_ptr<int64_t>() + row * time);
    }
    const torch::Tensor logits =
        model.Logits(tokens.to(device), ModelMode::kEvaluation).view({rows, time, int64_t{vocabulary}});
    for (int64_t row = 0; row < rows; ++row) {
      const size_t i = order[begin + static_cast<size_t>(row)];
      const auto first = static_cast<int64_t>(requests[i].first) - 1;
      const int64_t places = static_cast<int64_t>(read(i)) - first;
      if (places <= 0) continue;
      const torch::Tensor known = logits[row].narrow(0, first, places);
      scores[i] = ScoresOf(requests[i], torch::log_softmax(known, 1), options);
    }
    begin += static_cast<size_t>(rows);
  }
  return scores;
}

}  // namespace atl
