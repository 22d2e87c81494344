#include "tokenizer/tokenizer_name.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/digest.h"
#include "tokenizer/known_vocabularies.h"

namespace atl {
namespace {

/// Added tokens that are found in a text, by id.
std::vector<AddedToken> FoundTokens(const BpeModel& model) {
  std::vector<AddedToken> found;
  std::ranges::copy_if(model.added, std::back_inserter(found),
                       [](const AddedToken& token) { return !token.special; });
  std::ranges::sort(found, {}, &AddedToken::id);
  return found;
}

/// Qwen2.5 has the vocabulary of Qwen2, and finds these in a text.
bool AreThoseOfQwen25(const std::vector<AddedToken>& found) {
  constexpr std::string_view kContents[] = {"<tool_call>",    "</tool_call>",   "<|fim_prefix|>",
                                            "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
                                            "<|repo_name|>",  "<|file_sep|>"};
  TokenId next = 151657;
  return std::ranges::equal(found, kContents, [&](const AddedToken& token, std::string_view content) {
    return token.id == next++ && token.content == content;
  });
}

/// Published vocabularies number their tokens in the order of their merges, so that files with rules and
/// files without make the same tokens.
bool MergesInOrderOfTokens(const BpeModel& model) {
  if (model.order == MergeOrder::kByResult) return true;
  std::vector<bool> made(model.tokens.size());
  TokenId last = 0;
  for (const MergeRule& rule : model.merges) {
    if (made[rule.result]) continue;  // another way to make it, which comes later
    if (rule.result < last) return false;
    last = rule.result;
    made[rule.result] = true;
  }
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].size() > 1 && !made[id]) return false;
  }
  return true;
}

std::string DigestOf(const BpeModel& model, const std::string& vocabulary,
                     const std::vector<AddedToken>& found) {
  Sha256 hash;
  hash.Update(absl::StrCat(vocabulary, "\n", std::string(PatternName(model.pattern)), " ",
                           static_cast<int>(model.order), " ", static_cast<int>(model.whole_pieces), " ",
                           static_cast<int>(model.nfc), " ",
                           model.unknown ? absl::StrCat(*model.unknown) : std::string("none"), "\n"));
  for (const MergeRule& rule : model.merges) {
    hash.Update(absl::StrCat(rule.left, " ", rule.right, " ", rule.result, "\n"));
  }
  for (const AddedToken& token : found) {
    hash.Update(absl::StrCat("added ", token.id, " ", static_cast<int>(token.normalized), " ",
                             token.content.size(), " ", token.content, "\n"));
  }
  return hash.FinishHex();
}

}  // namespace

std::string TokenizerName(const BpeModel& model) {
  const std::string vocabulary = VocabularyFingerprint(model.tokens);
  const std::vector<AddedToken> found = FoundTokens(model);
  const KnownVocabulary* const known = FindKnownVocabulary(vocabulary);
  const bool same = known != nullptr && PatternName(known->pattern) == PatternName(model.pattern) &&
                    model.nfc == (known->pattern == Pattern::kQwen2) && MergesInOrderOfTokens(model);
  if (same && found.empty()) return std::string(known->name);
  if (same && known->name == "qwen2" && AreThoseOfQwen25(found)) return "qwen2.5";
  return absl::StrCat(std::string(PatternName(model.pattern)), "-",
                      DigestOf(model, vocabulary, found).substr(0, 8));
}

}  // namespace atl
