#include "tokenizer/known_vocabularies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/digest.h"

namespace atl {
namespace {

// The first three are the digests of OpenAI's .tiktoken files, the fourth that of Meta's tokenizer.model of
// Llama 3.
constexpr KnownVocabulary kKnown[] = {
    {"gpt2", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", Pattern::kGpt2},
    {"cl100k", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", Pattern::kCl100kTiktoken},
    {"o200k", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", Pattern::kO200k},
    {"llama3", "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55", Pattern::kCl100k},
    {"qwen2", "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186", Pattern::kQwen2},
    {"smollm", "8c1417c36cfcc9f2b614a7220ae0e18815d72e5b277f01f8c87bbb4edad27c8c", Pattern::kSmolLm},
};

void Add(TokenId id, std::string content, std::vector<AddedToken>& tokens) {
  tokens.push_back({.id = id, .content = std::move(content), .special = true});
}

std::vector<AddedToken> OfLlama3(TokenId first) {
  std::vector<AddedToken> tokens;
  constexpr std::string_view kNamed[] = {"begin_of_text",
                                         "end_of_text",
                                         "reserved_special_token_0",
                                         "reserved_special_token_1",
                                         "reserved_special_token_2",
                                         "reserved_special_token_3",
                                         "start_header_id",
                                         "end_header_id",
                                         "reserved_special_token_4",
                                         "eot_id"};
  for (const std::string_view name : kNamed) {
    Add(first + static_cast<TokenId>(tokens.size()), absl::StrCat("<|", std::string(name), "|>"), tokens);
  }
  for (int reserved = 5; tokens.size() < 256; ++reserved) {
    Add(first + static_cast<TokenId>(tokens.size()),
        absl::StrCat("<|reserved_special_token_", reserved, "|>"), tokens);
  }
  return tokens;
}

}  // namespace

std::string VocabularyFingerprint(const std::vector<std::string>& tokens) {
  Sha256 hash;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) hash.Update(absl::StrCat(absl::Base64Escape(tokens[id]), " ", id, "\n"));
  }
  return hash.FinishHex();
}

const KnownVocabulary* FindKnownVocabulary(std::string_view fingerprint) {
  const auto* found = std::ranges::find(kKnown, fingerprint, &KnownVocabulary::fingerprint);
  return found == std::end(kKnown) ? nullptr : found;
}

std::vector<AddedToken> SpecialTokensOf(const KnownVocabulary& known, size_t tokens) {
  std::vector<AddedToken> special;
  const auto next = static_cast<TokenId>(tokens);
  if (known.name == "gpt2") {
    Add(next, "<|endoftext|>", special);
  } else if (known.name == "cl100k") {
    Add(next + 1, "<|endoftext|>", special);
    Add(next + 2, "<|fim_prefix|>", special);
    Add(next + 3, "<|fim_middle|>", special);
    Add(next + 4, "<|fim_suffix|>", special);
    Add(next + 20, "<|endofprompt|>", special);
  } else if (known.name == "o200k") {
    Add(next + 1, "<|endoftext|>", special);
    Add(next + 20, "<|endofprompt|>", special);
  } else if (known.name == "llama3") {
    return OfLlama3(next);
  } else if (known.name == "qwen2") {
    Add(next, "<|endoftext|>", special);
    Add(next + 1, "<|im_start|>", special);
    Add(next + 2, "<|im_end|>", special);
  }
  return special;
}

}  // namespace atl
