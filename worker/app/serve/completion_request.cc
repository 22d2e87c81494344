#include "worker/app/serve/completion_request.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/bounded_json.h"

namespace atl {
namespace {

using Json = nlohmann::json;

constexpr char kFieldUrl[] = "atoll/field";
constexpr JsonBounds kBounds = {.depth = 4, .values = size_t{1} << 21};

absl::Status Wrong(std::string_view field, std::string_view what) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrFormat("'%s' %s", std::string(field), std::string(what)));
  status.SetPayload(kFieldUrl, absl::Cord(std::string(field)));
  return status;
}

absl::Status ReadFlag(const Json& value, std::string_view field, bool& out) {
  if (!value.is_boolean()) return Wrong(field, "must be true or false");
  out = value.get<bool>();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> WholeNumber(const Json& value, std::string_view field, uint64_t most) {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= most) return value.get<uint64_t>();
  return Wrong(field, absl::StrFormat("must be a whole number from 0 to %d", most));
}

absl::Status ReadReal(const Json& value, std::string_view field, double most, double& out) {
  const bool fits = value.is_number() && value.get<double>() >= 0 && value.get<double>() <= most;
  if (!fits) return Wrong(field, absl::StrFormat("must be a number from 0 to %g", most));
  out = value.get<double>();
  return absl::OkStatus();
}

absl::Status ReadStop(const Json& value, std::vector<std::string>& stops) {
  const Json list = value.is_array() ? value : Json::array({value});
  if (list.size() > kMostStops) return Wrong("stop", absl::StrFormat("has more than %d texts", kMostStops));
  for (const Json& stop : list) {
    if (!stop.is_string()) return Wrong("stop", "must be a text or a list of texts");
    if (!stop.get<std::string>().empty()) stops.push_back(stop.get<std::string>());
  }
  return absl::OkStatus();
}

/// Of features that this server does not have: only the value that leaves them off.
absl::Status CheckOff(const Json& value, std::string_view field) {
  static const auto& off = *new std::map<std::string_view, Json>{{"n", 1},
                                                                 {"best_of", 1},
                                                                 {"stream", false},
                                                                 {"presence_penalty", 0},
                                                                 {"suffix", ""},
                                                                 {"frequency_penalty", 0},
                                                                 {"logit_bias", Json::object()}};
  const auto known = off.find(field);
  if (known == off.end()) return Wrong(field, "is not a field that this server knows");
  if (value == known->second) return absl::OkStatus();
  return Wrong(field, absl::StrFormat("must be %s: this server has nothing else", known->second.dump()));
}

class Parser {
 public:
  explicit Parser(const CompletionBounds& bounds) : bounds_(bounds) {}

  absl::StatusOr<CompletionRequest> Parse(const Json& body) {
    for (const auto& [field, value] : body.items()) {
      if (!value.is_null()) ATOLL_RETURN_IF_ERROR(Read(field, value));
    }
    if (request_.prompts.empty()) return Wrong("prompt", "is missing");
    ATOLL_RETURN_IF_ERROR(CheckSizes());
    if (!request_.stop.empty() && bounds_.tokenizer == nullptr) return NoTokenizer("stop");
    return std::move(request_);
  }

 private:
  absl::Status NoTokenizer(std::string_view field) const {
    return Wrong(field,
                 "is a text, and this server has no tokenizer: send token numbers, or start it with "
                 "--tokenizer");
  }

  absl::Status Read(const std::string& field, const Json& value) {
    if (field == "prompt") return ReadPrompts(value);
    if (field == "model") {
      if (!value.is_string()) return Wrong(field, "must be a text");
      request_.model = value.get<std::string>();
      return absl::OkStatus();
    }
    if (field == "max_tokens") {
      ATOLL_ASSIGN_OR_RETURN(const uint64_t tokens, WholeNumber(value, field, bounds_.context));
      request_.max_tokens = static_cast<uint32_t>(tokens);
      return absl::OkStatus();
    }
    if (field == "logprobs") {
      ATOLL_ASSIGN_OR_RETURN(const uint64_t ranked, WholeNumber(value, field, kMostLogprobs));
      request_.logprobs = static_cast<uint32_t>(ranked);
      return absl::OkStatus();
    }
    if (field == "seed") {
      // Negative ones are seeds too.
      if (!value.is_number_integer()) return Wrong(field, "must be a whole number");
      request_.seed = static_cast<uint64_t>(value.get<int64_t>());
      return absl::OkStatus();
    }
    if (field == "temperature") return ReadReal(value, field, 100, request_.temperature);
    if (field == "top_p") return ReadReal(value, field, 1, request_.top_p);
    if (field == "echo") return ReadFlag(value, field, request_.echo);
    if (field == "stop") return ReadStop(value, request_.stop);
    if (field == "user") return absl::OkStatus();
    return CheckOff(value, field);
  }

  absl::Status ReadPrompts(const Json& value) {
    const bool one = value.is_string() || (value.is_array() && !value.empty() && value[0].is_number());
    if (one) return AddPrompt(value);
    if (!value.is_array() || value.empty()) {
      return Wrong("prompt", "must be a text, a list of token numbers, or a list of either");
    }
    if (value.size() > kMostPrompts) {
      return Wrong("prompt",
                   absl::StrFormat("has %d prompts; a request has at most %d", value.size(), kMostPrompts));
    }
    for (const Json& prompt : value) ATOLL_RETURN_IF_ERROR(AddPrompt(prompt));
    return absl::OkStatus();
  }

  absl::Status AddPrompt(const Json& prompt) {
    std::vector<TokenId>& tokens = request_.prompts.emplace_back();
    if (prompt.is_string()) {
      if (bounds_.tokenizer == nullptr) return NoTokenizer("prompt");
      bounds_.tokenizer->Encode(prompt.get<std::string>(), tokens);
    } else if (prompt.is_array()) {
      for (const Json& token : prompt) {
        if (!token.is_number_unsigned()) return Wrong("prompt", "holds something that is not a token number");
        if (token.get<uint64_t>() >= bounds_.vocabulary) {
          return Wrong("prompt", absl::StrFormat("holds token %d, and the vocabulary of the model is %d",
                                                 token.get<uint64_t>(), bounds_.vocabulary));
        }
        tokens.push_back(token.get<TokenId>());
      }
    } else {
      return Wrong("prompt", "must be a text, a list of token numbers, or a list of either");
    }
    if (tokens.empty() && bounds_.begin) tokens.push_back(*bounds_.begin);
    return tokens.empty() ? Wrong("prompt", "is empty") : absl::OkStatus();
  }

  absl::Status CheckSizes() const {
    size_t all = 0;
    for (const std::vector<TokenId>& prompt : request_.prompts) {
      const size_t tokens = prompt.size() + request_.max_tokens;
      all += tokens;
      // The last token is drawn without being read.
      if (tokens <= size_t{bounds_.context} + 1 && prompt.size() <= bounds_.context) continue;
      if (request_.max_tokens == 0 && prompt.size() == size_t{bounds_.context} + 1) continue;
      return Wrong("prompt", absl::StrFormat("has %d tokens and asks for %d more; the model sees %d at once",
                                             prompt.size(), request_.max_tokens, bounds_.context));
    }
    if (all <= kMostTokensOfRequest) return absl::OkStatus();
    return Wrong("prompt",
                 absl::StrFormat("is of %d tokens with what it asks for; a request has at most %d: send "
                                 "fewer prompts at once",
                                 all, kMostTokensOfRequest));
  }

  const CompletionBounds& bounds_;
  CompletionRequest request_;
};

}  // namespace

absl::StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body,
                                                         const CompletionBounds& bounds) {
  const auto json = ParseBoundedJson(body, kBounds);
  if (!json.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the body ", std::string(json.status().message())));
  }
  if (!json->is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  return Parser(bounds).Parse(*json);
}

std::string FieldOf(const absl::Status& status) {
  const auto field = status.GetPayload(kFieldUrl);
  return field ? std::string(*field) : "";
}

}  // namespace atl
