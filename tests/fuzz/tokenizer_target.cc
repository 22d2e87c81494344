#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/files.h"
#include "tokenizer/scanner.h"
#include "tokenizer/utf8.h"

namespace atl::fuzz {
namespace {

constexpr auto kPatterns = std::to_array({Pattern::kGpt2, Pattern::kCl100k, Pattern::kCl100kTiktoken,
                                          Pattern::kQwen2, Pattern::kO200k, Pattern::kSmolLm});
constexpr std::string_view kText =
    "It's 12 files,\n\n  isn't it? <t> \u00e9e\u0301 \u4e2d\u6587 \xff\xe2\x82 "
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// What holds for every tokenizer and text: ids are in the vocabulary, nothing is lost, parts make the same
/// tokens.
void CheckText(const BpeTokenizer& tokenizer, std::string_view text) {
  BpeEncoder encoder(tokenizer, InvalidUtf8::kKeep);
  std::vector<TokenId> tokens;
  encoder.Encode(text, tokens);
  for (const TokenId token : tokens) ATOLL_FUZZ_REQUIRE(token < tokenizer.vocabulary());
  if (tokenizer.lossless()) ATOLL_FUZZ_REQUIRE(tokenizer.Decode(tokens) == text);
  std::vector<TokenId> parts;
  std::string waiting;
  for (size_t at = 0; at < text.size(); at += 7) {
    waiting += text.substr(at, 7);
    waiting.erase(0, encoder.EncodePrefix(waiting, parts));
  }
  encoder.Encode(waiting, parts);
  ATOLL_FUZZ_REQUIRE(parts == tokens);
}

void CheckModel(const absl::StatusOr<BpeModel>& model) {
  if (!model.ok()) return;
  const auto tokenizer = BpeTokenizer::Create(*model);
  if (tokenizer.ok()) CheckText(**tokenizer, kText);
}

/// Bytes, and every pair of letters that the input names.
BpeModel TextModel(Pattern pattern, std::string_view pairs) {
  BpeModel model;
  model.pattern = pattern;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  for (size_t at = 0; at + 2 <= pairs.size(); at += 2) {
    const std::string token(pairs.substr(at, 2));
    if (std::ranges::find(model.tokens, token) == model.tokens.end()) model.tokens.push_back(token);
  }
  model.added = {{.id = 1000, .content = "<t>", .special = false},
                 {.id = 1001, .content = "<s>", .special = true}};
  return model;
}

}  // namespace

void FuzzTokenizerJson(FuzzInput in) { CheckModel(ParseTokenizerJson(in.RestText())); }

void FuzzTiktoken(FuzzInput in) { CheckModel(ParseTiktoken(in.RestText(), "cl100k")); }

// vocab.json and merges.txt, with a zero between them.
void FuzzVocabMerges(FuzzInput in) {
  const std::string text = in.RestText();
  const size_t vocab = std::min(text.find('\0'), text.size());
  CheckModel(
      ParseVocabAndMerges(text.substr(0, vocab), text.substr(std::min(vocab + 1, text.size())), "gpt2"));
}

// Any text, with each pattern and a small vocabulary.
void FuzzTokenizerText(FuzzInput in) {
  const size_t pattern = in.Byte();
  const std::string pairs = in.Text(in.Byte());
  const std::string text = in.RestText();
  BpeModel model = TextModel(kPatterns[pattern % kPatterns.size()], pairs);
  model.nfc = pattern >= 128;
  const auto tokenizer = BpeTokenizer::Create(std::move(model));
  ATOLL_FUZZ_REQUIRE(tokenizer.ok());
  CheckText(**tokenizer, text);
}

}  // namespace atl::fuzz
