#include "worker/app/serve/completion_reply.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "nlohmann/json.hpp"
#include "worker/app/serve/token_text.h"

namespace atl {
namespace {

using Json = nlohmann::json;

/// Foreign bytes in a text become U+FFFD.
std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The likeliest tokens of a place, and the one that stands there. Two tokens may have one text; the
/// likelier one is shown.
Json Likeliest(const Tokenizer* tokenizer, TokenId token, float log_probability,
               std::span<const RankedToken> ranked, size_t most) {
  Json found = Json::object();
  const auto add = [&](TokenId id, float value) {
    const std::string text = TokenText(tokenizer, id);
    if (!found.contains(text) || found[text].get<float>() < value) found[text] = value;
  };
  for (const RankedToken& one : ranked.first(std::min(most, ranked.size())))
    add(one.token, one.log_probability);
  add(token, log_probability);
  return found;
}

Json LogprobsOf(const CompletionRequest& request, const Tokenizer* tokenizer, const Completion& completion) {
  const TokenScores& scores = *completion.scores;
  const size_t unscored = completion.tokens.size() - scores.log_probabilities.size();
  Json tokens = Json::array(), values = Json::array(), likeliest = Json::array(), offsets = Json::array();
  size_t offset = 0;
  for (size_t i = 0; i < completion.tokens.size(); ++i) {
    const TokenId token = completion.tokens[i];
    tokens.push_back(TokenText(tokenizer, token));
    offsets.push_back(offset);
    if (tokenizer != nullptr) offset += CharactersBegun(tokenizer->Decode(std::span(&token, 1)));
    if (i < unscored) {
      values.push_back(nullptr);
      likeliest.push_back(nullptr);
      continue;
    }
    const size_t place = i - unscored;
    const float value = scores.log_probabilities[place];
    values.push_back(value);
    const std::span<const RankedToken> ranked = place < scores.ranked.size()
                                                    ? std::span<const RankedToken>(scores.ranked[place])
                                                    : std::span<const RankedToken>();
    likeliest.push_back(Likeliest(tokenizer, token, value, ranked, request.logprobs.value_or(0)));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(likeliest)},
          {"text_offset", std::move(offsets)}};
}

Json ModelOf(const std::string& model, int64_t created, uint32_t context) {
  return {{"id", model},
          {"object", "model"},
          {"created", created},
          {"owned_by", "atoll"},
          {"max_model_len", context}};
}

}  // namespace

std::string CompletionJson(const std::string& model, int64_t created, const CompletionRequest& request,
                           const Tokenizer* tokenizer, std::span<const Completion> completions) {
  Json choices = Json::array();
  size_t read = 0, drawn = 0;
  for (const Completion& completion : completions) {
    choices.push_back({{"text", completion.text},
                       {"index", choices.size()},
                       {"logprobs", completion.scores ? LogprobsOf(request, tokenizer, completion) : Json()},
                       {"finish_reason", completion.stopped ? "stop" : "length"}});
    read += completion.prompt_tokens;
    drawn += completion.drawn;
  }
  return Text(
      {{"id", absl::StrCat("cmpl-", ToHex(RandomBytes(12)))},
       {"object", "text_completion"},
       {"created", created},
       {"model", model},
       {"choices", std::move(choices)},
       {"usage", {{"prompt_tokens", read}, {"completion_tokens", drawn}, {"total_tokens", read + drawn}}}});
}

std::string ModelsJson(const std::string& model, int64_t created, uint32_t context) {
  return Text({{"object", "list"}, {"data", Json::array({ModelOf(model, created, context)})}});
}

std::string ModelJson(const std::string& model, int64_t created, uint32_t context) {
  return Text(ModelOf(model, created, context));
}

std::string ApiErrorJson(int http_status, const std::string& message) {
  return Text({{"error",
                {{"message", message},
                 {"type", http_status >= 500 ? "server_error" : "invalid_request_error"},
                 {"param", Json()},
                 {"code", Json()}}}});
}

WebReply ApiError(const absl::Status& status) {
  // As the replies of every server of this project have it, with the API's own fields.
  WebReply reply = ErrorReply(status);
  const bool own = reply.status >= 500;
  Json code;
  if (status.code() == absl::StatusCode::kNotFound) code = "model_not_found";
  if (status.code() == absl::StatusCode::kUnauthenticated) code = "invalid_api_key";
  const std::string field = FieldOf(status);
  reply.body = Text({{"error",
                      {{"message", std::string(status.message())},
                       {"type", own ? "server_error" : "invalid_request_error"},
                       {"param", field.empty() ? Json() : Json(field)},
                       {"code", code}}}});
  return reply;
}

}  // namespace atl
