#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/bounded_json.h"
#include "core/foreign_name.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/files.h"
#include "tokenizer/json_vocabulary.h"
#include "tokenizer/merge_rules.h"

namespace atl {
namespace {

using Json = nlohmann::json;

constexpr char kElsewhere[] = "make the tokens with another program, then run `atoll-data adopt`";

absl::Status Unsupported(std::string_view field, std::string_view found, std::string_view known) {
  return absl::InvalidArgumentError(absl::StrFormat("has %s %s, and Atoll knows %s; %s", std::string(field),
                                                    std::string(found), std::string(known), kElsewhere));
}

/// The member as text for a message: a string, or JSON, cut.
std::string Shown(const Json* json) {
  if (json == nullptr) return "that is missing";
  return absl::StrFormat(
      "'%s'", ForeignName(json->is_string() ? json->get_ref<const std::string&>()
                                            : json->dump(-1, ' ', false, Json::error_handler_t::replace)));
}

bool IsNull(const Json* json) { return json == nullptr || json->is_null(); }

bool IsText(const Json* json, std::string_view text) {
  return json != nullptr && json->is_string() && json->get_ref<const std::string&>() == text;
}

/// Missing, null or `value`.
bool IsOrAbsent(const Json* json, bool value) {
  return IsNull(json) || (json->is_boolean() && json->get<bool>() == value);
}

bool IsEmptyText(const Json* json) { return IsNull(json) || IsText(json, ""); }

absl::Status ReadNormalizer(const Json& file, BpeModel& model) {
  const Json* const normalizer = JsonAt(file, "normalizer");
  if (IsNull(normalizer)) return absl::OkStatus();
  if (IsText(JsonAt(*normalizer, "type"), "NFC")) {
    model.nfc = true;
    return absl::OkStatus();
  }
  return Unsupported("normalizer", Shown(normalizer), "null and NFC");
}

/// ByteLevel without a space before the text.
bool IsByteLevel(const Json& step, bool use_regex) {
  const Json* const regex = JsonAt(step, "use_regex");
  return IsText(JsonAt(step, "type"), "ByteLevel") && IsOrAbsent(JsonAt(step, "add_prefix_space"), false) &&
         !IsNull(JsonAt(step, "add_prefix_space")) &&
         (use_regex ? IsOrAbsent(regex, true) : !IsNull(regex) && IsOrAbsent(regex, false));
}

/// The expression of a Split whose matches become pieces. They cover every text, so that it is the same
/// whether what is between them is removed or a piece of its own.
std::optional<Pattern> SplitPattern(const Json& step) {
  const Json* const expression = JsonAt(step, "pattern.Regex");
  if (!IsText(JsonAt(step, "type"), "Split") || expression == nullptr || !expression->is_string())
    return std::nullopt;
  const bool isolated =
      IsText(JsonAt(step, "behavior"), "Isolated") && IsOrAbsent(JsonAt(step, "invert"), false);
  const Json* const invert = JsonAt(step, "invert");
  const bool matches =
      IsText(JsonAt(step, "behavior"), "Removed") && !IsNull(invert) && IsOrAbsent(invert, true);
  if (!isolated && !matches) return std::nullopt;
  return PatternOfExpression(expression->get_ref<const std::string&>());
}

std::optional<Pattern> PatternOfSteps(const Json& pre_tokenizer) {
  if (IsByteLevel(pre_tokenizer, /*use_regex=*/true)) return Pattern::kGpt2;
  const Json* const steps = JsonAt(pre_tokenizer, "pretokenizers");
  if (!IsText(JsonAt(pre_tokenizer, "type"), "Sequence") || steps == nullptr || !steps->is_array() ||
      steps->size() != 2) {
    return std::nullopt;
  }
  const Json& first = (*steps)[0];
  const Json& second = (*steps)[1];
  if (IsText(JsonAt(first, "type"), "Digits")) {
    const Json* const each = JsonAt(first, "individual_digits");
    if (each == nullptr || !each->is_boolean() || !each->get<bool>()) return std::nullopt;
    return IsByteLevel(second, /*use_regex=*/true) ? std::optional(Pattern::kSmolLm) : std::nullopt;
  }
  return IsByteLevel(second, /*use_regex=*/false) ? SplitPattern(first) : std::nullopt;
}

/// Whether a step puts a space before the text.
bool AddsSpace(const Json& step) {
  return IsText(JsonAt(step, "type"), "ByteLevel") && !IsOrAbsent(JsonAt(step, "add_prefix_space"), false);
}

absl::Status ReadPreTokenizer(const Json& file, BpeModel& model) {
  const Json* const pre_tokenizer = JsonAt(file, "pre_tokenizer");
  const auto pattern = IsNull(pre_tokenizer) ? std::nullopt : PatternOfSteps(*pre_tokenizer);
  if (!pattern && !IsNull(pre_tokenizer)) {
    const Json* const steps = JsonAt(*pre_tokenizer, "pretokenizers");
    const bool in_steps = steps != nullptr && steps->is_array() && std::ranges::any_of(*steps, AddsSpace);
    if (in_steps || AddsSpace(*pre_tokenizer)) {
      return Unsupported("add_prefix_space of pre_tokenizer", "true",
                         "false, because a space before every text is not part of it; train the tokenizer "
                         "with ByteLevel(add_prefix_space=False)");
    }
  }
  if (!pattern) {
    return Unsupported("pre_tokenizer", Shown(pre_tokenizer),
                       "those of gpt2, cl100k, o200k, Llama-3, Qwen2 and SmolLM");
  }
  model.pattern = *pattern;
  return absl::OkStatus();
}

/// What else a BPE model may have and would make other tokens.
absl::Status CheckModelOptions(const Json& bpe) {
  const Json* const type = JsonAt(bpe, "type");
  if (!IsNull(type) && !IsText(type, "BPE")) return Unsupported("model.type", Shown(type), "'BPE'");
  const Json* const dropout = JsonAt(bpe, "dropout");
  if (!IsNull(dropout) && !(dropout->is_number() && dropout->get<double>() == 0)) {
    return Unsupported("model.dropout", Shown(dropout), "null");
  }
  for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!IsEmptyText(JsonAt(bpe, affix)))
      return Unsupported(absl::StrFormat("model.%s", affix), Shown(JsonAt(bpe, affix)), "''");
  }
  for (const char* const flag : {"byte_fallback", "fuse_unk"}) {
    if (!IsOrAbsent(JsonAt(bpe, flag), false))
      return Unsupported(absl::StrFormat("model.%s", flag), Shown(JsonAt(bpe, flag)), "false");
  }
  const Json* const ignore = JsonAt(bpe, "ignore_merges");
  if (!IsNull(ignore) && !ignore->is_boolean())
    return Unsupported("model.ignore_merges", Shown(ignore), "true and false");
  return absl::OkStatus();
}

absl::Status ReadMerges(const Json* merges, MergeRules& rules) {
  if (merges == nullptr || !merges->is_array())
    return absl::InvalidArgumentError("has no model.merges: an array is expected");
  for (const Json& merge : *merges) {
    if (merge.is_string()) {
      ATOLL_RETURN_IF_ERROR(rules.Add(merge.get_ref<const std::string&>()));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      ATOLL_RETURN_IF_ERROR(
          rules.Add(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()));
    } else {
      return absl::InvalidArgumentError(absl::StrFormat(
          "has a merge %s in model.merges; 'LEFT RIGHT' or [LEFT, RIGHT] is expected", Shown(&merge)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedToken> ReadAddedToken(const Json& json, bool nfc) {
  const Json* const content = JsonAt(json, "content");
  const Json* const id = JsonAt(json, "id");
  if (content == nullptr || !content->is_string() || id == nullptr || !id->is_number_unsigned() ||
      id->get<uint64_t>() >= kMaxVocabulary) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "has an entry %s in added_tokens; {\"id\": number below %d, \"content\": text, ...} is expected",
        Shown(&json), kMaxVocabulary));
  }
  AddedToken token{.id = id->get<TokenId>(),
                   .content = content->get<std::string>(),
                   .special = !IsOrAbsent(JsonAt(json, "special"), false),
                   .normalized = !IsOrAbsent(JsonAt(json, "normalized"), false)};
  if (token.special) return token;
  // Only tokens that are looked for in a text.
  for (const char* const flag : {"single_word", "lstrip", "rstrip"}) {
    if (!IsOrAbsent(JsonAt(json, flag), false)) {
      return Unsupported(absl::StrFormat("added_tokens with %s", flag), Shown(content),
                         "false there, unless the token is special");
    }
  }
  if (nfc && !IsOrAbsent(JsonAt(json, "normalized"), false)) {
    return Unsupported("added_tokens with normalized", Shown(content),
                       "false there beside a normalizer, unless the token is special");
  }
  if (token.content.find_first_of("\r\n") != std::string::npos) {
    return Unsupported("added_tokens with a line end", Shown(content), "none, unless the token is special");
  }
  return token;
}

absl::Status ReadAdded(const Json& file, BpeModel& model) {
  const Json* const added = JsonAt(file, "added_tokens");
  if (IsNull(added)) return absl::OkStatus();
  if (!added->is_array() || added->size() > kMaxAddedTokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has added_tokens that are no array of at most %d", kMaxAddedTokens));
  }
  for (const Json& json : *added) {
    ATOLL_ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(json, model.nfc));
    model.added.push_back(std::move(token));
  }
  return absl::OkStatus();
}

/// The bytes of all tokens. Returns which ones are added tokens too.
absl::StatusOr<std::vector<bool>> ReadTokens(const JsonVocabulary& vocabulary, BpeModel& model) {
  model.tokens.resize(vocabulary.size);
  std::vector<bool> added(vocabulary.size);
  for (const AddedToken& token : model.added) {
    const auto found = vocabulary.ids.find(token.content);
    if (found == vocabulary.ids.end()) continue;
    if (found->second != token.id) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has token '%s' with the id %d in model.vocab and %d in added_tokens",
                          ForeignName(token.content), found->second, token.id));
    }
    added[token.id] = true;
  }
  for (const auto& [name, id] : vocabulary.ids) {
    auto bytes = FromByteLevel(name);
    if (added[id] && !bytes) continue;
    if (!bytes || bytes->empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has token '%s' in model.vocab, which is not in GPT-2's alphabet of bytes; %s",
                          ForeignName(name), kElsewhere));
    }
    model.tokens[id] = *std::move(bytes);
  }
  return added;
}

/// An added token that ordinary text can also become keeps its bytes: a byte, what a merge makes, or a whole
/// piece. The others, such as <|endoftext|>, are only added tokens.
void LeaveOutAdded(const std::vector<bool>& added, BpeModel& model) {
  std::vector<bool> made(model.tokens.size(), model.whole_pieces);
  for (const MergeRule& rule : model.merges) made[rule.result] = true;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (added[id] && !made[id] && model.tokens[id].size() > 1) model.tokens[id].clear();
  }
}

absl::Status ReadModel(const Json& file, BpeModel& model) {
  const Json* const bpe = JsonAt(file, "model");
  ATOLL_RETURN_IF_ERROR(CheckModelOptions(*bpe));
  ATOLL_ASSIGN_OR_RETURN(const JsonVocabulary vocabulary,
                         ReadJsonVocabulary(JsonAt(*bpe, "vocab"), "model.vocab"));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<bool> added, ReadTokens(vocabulary, model));
  MergeRules rules(vocabulary.ids);
  ATOLL_RETURN_IF_ERROR(ReadMerges(JsonAt(*bpe, "merges"), rules));
  model.merges = rules.Take();
  model.order = MergeOrder::kByRule;
  model.whole_pieces = !IsOrAbsent(JsonAt(*bpe, "ignore_merges"), false);
  LeaveOutAdded(added, model);
  const Json* const unknown = JsonAt(*bpe, "unk_token");
  if (IsNull(unknown)) return absl::OkStatus();
  const auto id = unknown->is_string() ? vocabulary.ids.find(unknown->get_ref<const std::string&>())
                                       : vocabulary.ids.end();
  if (id == vocabulary.ids.end())
    return Unsupported("model.unk_token", Shown(unknown), "a token of model.vocab");
  model.unknown = id->second;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BpeModel> ParseTokenizerJson(std::string_view text) {
  // A rule is an array of two texts; a token is a name and a number.
  ATOLL_ASSIGN_OR_RETURN(const Json file,
                         ParseBoundedJson(text, {.depth = 12, .values = 4 * kMaxMergeRules}));
  if (!file.is_object()) return absl::InvalidArgumentError("is no tokenizer.json: an object is expected");
  const Json* const bpe = JsonAt(file, "model");
  if (bpe == nullptr || !bpe->is_object()) {
    return absl::InvalidArgumentError(
        "has no model, so it is no tokenizer.json; name a tokenizer.json, a vocab.json or a .tiktoken file");
  }
  BpeModel model;
  ATOLL_RETURN_IF_ERROR(ReadNormalizer(file, model));
  ATOLL_RETURN_IF_ERROR(ReadPreTokenizer(file, model));
  const Json* const decoder = JsonAt(file, "decoder.type");
  if (!IsNull(JsonAt(file, "decoder")) && !IsText(decoder, "ByteLevel"))
    return Unsupported("decoder", Shown(JsonAt(file, "decoder")), "ByteLevel");
  ATOLL_RETURN_IF_ERROR(ReadAdded(file, model));
  ATOLL_RETURN_IF_ERROR(ReadModel(file, model));
  return model;
}

}  // namespace atl
