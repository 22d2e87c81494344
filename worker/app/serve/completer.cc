#include "worker/app/serve/completer.h"

#include <algorithm>
#include <utility>

#include "common/digest.h"
#include "common/status.h"
#include "worker/app/text_stream.h"

namespace atl {
namespace {

constexpr size_t kPromptsAtOnce = 8;

CompletionBounds BoundsOf(const LoadedModel& model, const Tokenizer* tokenizer) {
  CompletionBounds bounds = {.context = model.options.context(),
                             .vocabulary = model.options.vocabulary(),
                             .tokenizer = tokenizer,
                             .begin = model.begin};
  if (!bounds.begin && !model.endings.empty()) bounds.begin = model.endings.front();
  return bounds;
}

std::span<const TokenId> DrawnOf(const Completion& completion) {
  return std::span(completion.tokens).last(completion.drawn);
}

/// The prompt's tokens are part of what is shown and scored, or not.
std::vector<TokenId> Begun(const CompletionRequest& request, size_t prompt) {
  return request.echo ? request.prompts[prompt] : std::vector<TokenId>();
}

size_t FirstScored(const CompletionRequest& request, size_t prompt) {
  return request.echo ? 1 : request.prompts[prompt].size();
}

}  // namespace

Completer::Completer(LoadedModel model, std::unique_ptr<Tokenizer> tokenizer)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      bounds_(BoundsOf(model_, tokenizer_.get())) {}

bool Completer::Ends(TokenId token) const {
  return std::ranges::find(model_.endings, token) != model_.endings.end();
}

absl::Status Completer::Draw(const CompletionRequest& request, size_t prompt, const Check& check,
                             Completion& completion) {
  completion.tokens = Begun(request, prompt);
  if (request.max_tokens == 0) return absl::OkStatus();
  GenerateOptions options = {.tokens = request.max_tokens,
                             .sampling = {.temperature = request.temperature, .top_p = request.top_p}};
  // Each prompt of a request draws otherwise.
  options.sampling.seed = request.seed ? *request.seed + prompt : RandomNonZero64();
  std::optional<TextStream> stream;
  if (!request.stop.empty()) stream.emplace(*tokenizer_, request.stop);
  absl::Status checked;
  const absl::Status drawn = model_.replica->Generate(request.prompts[prompt], options, [&](TokenId token) {
    checked = check();
    completion.tokens.push_back(token);
    ++completion.drawn;
    if (!checked.ok() || Ends(token)) return false;
    if (stream) stream->Add(token);
    return !stream || !stream->stopped();
  });
  return checked.ok() ? drawn : checked;
}

absl::Status Completer::Score(const CompletionRequest& request, size_t begin,
                              std::span<Completion> completions) {
  std::vector<std::vector<TokenId>> texts;
  std::vector<ScoreRequest> wanted;
  for (size_t i = 0; i < completions.size(); ++i) {
    std::vector<TokenId>& text = texts.emplace_back(request.prompts[begin + i]);
    const auto drawn = DrawnOf(completions[i]);
    text.insert(text.end(), drawn.begin(), drawn.end());
    wanted.push_back({.first = FirstScored(request, begin + i)});
  }
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i].tokens = texts[i];
  ATOLL_ASSIGN_OR_RETURN(std::vector<TokenScores> scores,
                         model_.replica->Score(wanted, {.ranked = request.logprobs.value_or(0)}));
  for (size_t i = 0; i < completions.size(); ++i) completions[i].scores = std::move(scores[i]);
  return absl::OkStatus();
}

absl::Status Completer::ScoreAndDrawOne(const CompletionRequest& request, size_t begin,
                                        std::span<Completion> completions) {
  std::vector<ScoreRequest> wanted;
  for (size_t i = 0; i < completions.size(); ++i) {
    wanted.push_back({.tokens = request.prompts[begin + i], .first = FirstScored(request, begin + i)});
  }
  const uint32_t ranked = std::max<uint32_t>(1, request.logprobs.value_or(0));
  ATOLL_ASSIGN_OR_RETURN(std::vector<TokenScores> scores, model_.replica->Score(wanted, {.ranked = ranked}));
  for (size_t i = 0; i < completions.size(); ++i) {
    const RankedToken likeliest = scores[i].ranked.back().front();
    completions[i].tokens = Begun(request, begin + i);
    completions[i].tokens.push_back(likeliest.token);
    completions[i].drawn = 1;
    scores[i].log_probabilities.push_back(likeliest.log_probability);
    completions[i].scores = std::move(scores[i]);
  }
  return absl::OkStatus();
}

void Completer::SetText(const CompletionRequest& request, const std::vector<TokenId>& prompt,
                        Completion& completion) const {
  completion.prompt_tokens = prompt.size();
  std::span<const TokenId> drawn = DrawnOf(completion);
  if (!drawn.empty() && Ends(drawn.back())) {
    completion.stopped = true;
    drawn = drawn.first(drawn.size() - 1);
  }
  if (tokenizer_ == nullptr) return;
  if (request.echo) completion.text = tokenizer_->Decode(prompt);
  TextStream stream(*tokenizer_, request.stop);
  for (const TokenId token : drawn) completion.text += stream.Add(token);
  completion.stopped = completion.stopped || stream.stopped();
  completion.text += stream.Finish();
}

absl::StatusOr<std::vector<Completion>> Completer::Complete(const CompletionRequest& request,
                                                            const Check& check) {
  std::vector<Completion> completions(request.prompts.size());
  const bool likeliest = request.logprobs && request.max_tokens == 1 && request.temperature == 0;
  for (size_t begin = 0; begin < completions.size(); begin += kPromptsAtOnce) {
    const auto group =
        std::span(completions).subspan(begin, std::min(kPromptsAtOnce, completions.size() - begin));
    ATOLL_RETURN_IF_ERROR(check());
    if (likeliest) {
      ATOLL_RETURN_IF_ERROR(ScoreAndDrawOne(request, begin, group));
      continue;
    }
    for (size_t i = 0; i < group.size(); ++i) {
      ATOLL_RETURN_IF_ERROR(Draw(request, begin + i, check, group[i]));
    }
    if (request.logprobs) ATOLL_RETURN_IF_ERROR(Score(request, begin, group));
  }
  for (size_t i = 0; i < completions.size(); ++i) SetText(request, request.prompts[i], completions[i]);
  return completions;
}

}  // namespace atl
