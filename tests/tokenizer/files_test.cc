#include "tokenizer/files.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"
#include "tokenizer/bpe_encoder.h"
#include "tokenizer/load.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJson[] = R"({"version": "1.0", "normalizer": null,
 "added_tokens": [{"id": 5, "content": "<|endoftext|>", "special": true, "normalized": false},
                  {"id": 6, "content": "<t>", "special": false, "normalized": false}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
 "decoder": {"type": "ByteLevel"},
 "model": {"type": "BPE", "dropout": null, "unk_token": null, "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġab": 4},
           "merges": ["a b", "Ġ ab"]}})";

std::string Fault(std::string_view text) {
  const auto model = ParseTokenizerJson(text);
  EXPECT_FALSE(model.ok());
  return std::string(model.status().message());
}

std::string With(std::string_view from, std::string_view to) {
  const std::string text = absl::StrReplaceAll(kJson, {{std::string(from), std::string(to)}});
  EXPECT_NE(text, kJson);
  return text;
}

TEST(TokenizerJsonTest, ReadsTokensMergesAndAddedTokens) {
  const auto model = ParseTokenizerJson(kJson);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto tokenizer = BpeTokenizer::Create(*model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocabulary(), 7u);
  EXPECT_EQ((*tokenizer)->end_of_text(), 5u);
  EXPECT_TRUE((*tokenizer)->name().starts_with("gpt2-"));
  std::vector<TokenId> tokens;
  BpeEncoder(**tokenizer).Encode("ab ab<t>ba", tokens);
  EXPECT_THAT(tokens, ElementsAre(3, 4, 6, 1, 0));
}

std::unique_ptr<BpeTokenizer> Read(std::string_view text) {
  auto model = ParseTokenizerJson(text);
  EXPECT_TRUE(model.ok()) << model.status();
  auto tokenizer = BpeTokenizer::Create(*std::move(model));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

TEST(TokenizerJsonTest, ATokenThatIsSpecialTooKeepsItsText) {
  // What add_special_tokens({"pad_token": "b"}) writes, and the same for a token that a merge makes.
  for (const auto& [id, content] : {std::pair(1, "b"), std::pair(3, "ab")}) {
    const auto tokenizer =
        Read(With("{\"id\": 6,", absl::StrFormat(R"({"id": %d, "content": "%s", "special": true}, {"id": 6,)",
                                                 id, content)));
    std::vector<TokenId> tokens;
    BpeEncoder(*tokenizer).Encode("ab ab<t>ba", tokens);
    EXPECT_THAT(tokens, ElementsAre(3, 4, 6, 1, 0)) << content;
    EXPECT_EQ(tokenizer->Decode(tokens), "ab ab<t>ba");
  }
}

TEST(TokenizerJsonTest, WhateverChangesTheTokensChangesTheName) {
  std::set<std::string> names;
  names.insert(Read(kJson)->name());
  names.insert(Read(With(R"("a b", "Ġ ab")", R"("Ġ ab", "a b")"))->name());
  names.insert(Read(With(R"("a b", "Ġ ab")", ""))->name());
  names.insert(Read(With("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}"))->name());
  names.insert(Read(With("\"<t>\"", "\"<u>\""))->name());
  names.insert(Read(With("\"special\": false,", "\"special\": true,"))->name());
  names.insert(Read(With("\"dropout\": null", "\"ignore_merges\": true"))->name());
  EXPECT_EQ(names.size(), 7u);
  // A special token is never found in a text.
  EXPECT_EQ(Read(With("<|endoftext|>", "<|end|>"))->name(), Read(kJson)->name());
}

TEST(TokenizerJsonTest, OtherKindsAreRefusedByName) {
  EXPECT_THAT(Fault(With("\"BPE\"", "\"Unigram\"")),
              AllOf(HasSubstr("model.type 'Unigram'"), HasSubstr("atoll-data adopt")));
  EXPECT_THAT(Fault(With(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true})",
                         R"({"type": "Metaspace"})")),
              AllOf(HasSubstr("pre_tokenizer"), HasSubstr("Metaspace"), HasSubstr("SmolLM")));
  EXPECT_THAT(Fault(With("\"add_prefix_space\": false", "\"add_prefix_space\": true")),
              HasSubstr("ByteLevel(add_prefix_space=False)"));
  EXPECT_THAT(Fault(With("\"add_prefix_space\": false", "\"add_prefix_space\": true")),
              HasSubstr("pre_tokenizer"));
  EXPECT_THAT(Fault(With("\"normalizer\": null", "\"normalizer\": {\"type\": \"Lowercase\"}")),
              HasSubstr("normalizer"));
  EXPECT_THAT(Fault(With("\"decoder\": {\"type\": \"ByteLevel\"}", "\"decoder\": {\"type\": \"WordPiece\"}")),
              HasSubstr("decoder"));
  EXPECT_THAT(Fault(With("\"unk_token\": null", "\"byte_fallback\": true")),
              HasSubstr("model.byte_fallback"));
  EXPECT_THAT(Fault(With("\"special\": false,", "\"special\": false, \"lstrip\": true,")),
              HasSubstr("added_tokens with lstrip '<t>'"));
  EXPECT_THAT(Fault(With("<t>", "<t\\n>")), HasSubstr("line end"));
}

TEST(TokenizerJsonTest, DamagedFilesAreRejectedWithTheField) {
  EXPECT_THAT(Fault("{"), HasSubstr("is not JSON"));
  EXPECT_THAT(Fault("[]"), HasSubstr("object is expected"));
  EXPECT_THAT(Fault(std::string(100000, '[')), HasSubstr("nested deeper than 12 levels"));
  EXPECT_THAT(Fault(With("\"b\": 1", "\"b\": 0")), HasSubstr("two tokens in model.vocab with the id 0"));
  EXPECT_THAT(Fault(With("\"b\": 1", "\"b\": -1")), HasSubstr("'b' in model.vocab"));
  EXPECT_THAT(Fault(With("\"b\": 1", "\"b\": 99999999")), HasSubstr("below 1048576"));
  EXPECT_THAT(Fault(With("\"a b\",", "\"a c\",")),
              HasSubstr("merge 1 names a token that the vocabulary lacks: 'c'"));
  EXPECT_THAT(Fault(With("\"a b\",", "\"b a\",")), HasSubstr("makes a token"));
  EXPECT_THAT(Fault(With("\"a b\",", "7,")), HasSubstr("model.merges"));
  EXPECT_THAT(Fault(With("\"b\": 1", "\"b\": 1, \"日\": 9")), HasSubstr("GPT-2's alphabet"));
  EXPECT_THAT(Fault(With("\"id\": 5,", "")), HasSubstr("added_tokens"));
}

TEST(TiktokenTest, LinesAreCheckedAndThePatternIsAsked) {
  std::string lines;
  for (int byte = 0; byte < 256; ++byte) {
    absl::StrAppend(&lines, absl::Base64Escape(std::string(1, static_cast<char>(byte))), " ", byte, "\n");
  }
  lines += "YWI= 256\n";
  const auto model = ParseTiktoken(lines, "gpt2");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->tokens.size(), 257u);
  EXPECT_EQ(model->tokens['a'], "a");
  EXPECT_EQ(model->tokens[256], "ab");
  const std::string without_a = absl::StrReplaceAll(lines, {{"YQ== 97\n", ""}});
  EXPECT_THAT(std::string(ParseTiktoken(without_a, "gpt2").status().message()),
              HasSubstr("has no token for the byte 0x61, so it is incomplete"));
  EXPECT_THAT(std::string(ParseTiktoken(lines, "").status().message()),
              HasSubstr("name its pattern (--tokenizer-pattern: gpt2, cl100k"));
  EXPECT_THAT(std::string(ParseTiktoken(lines, "gpt3").status().message()), HasSubstr("pattern 'gpt3'"));
  EXPECT_THAT(std::string(ParseTiktoken("YQ== 0\nhello\n", "gpt2").status().message()),
              HasSubstr("line 2 is not 'BASE64 ID'"));
  EXPECT_THAT(std::string(ParseTiktoken("YQ== 0\nYg== 0\n", "gpt2").status().message()),
              HasSubstr("line 2 has the id 0"));
  EXPECT_THAT(std::string(ParseTiktoken("YQ== 4000000000\n", "gpt2").status().message()),
              HasSubstr("line 1 has the id"));
  EXPECT_FALSE(ParseTiktoken("", "gpt2").ok());
}

TEST(VocabAndMergesTest, TokensThatNoMergeMakesAreSpecial) {
  const auto model =
      ParseVocabAndMerges(R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})", "#version: 0.2\na b\n", "gpt2");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->added.size(), 1u);
  EXPECT_EQ(model->added[0].content, "<|endoftext|>");
  EXPECT_TRUE(model->tokens[3].empty());
  EXPECT_THAT(std::string(ParseVocabAndMerges("[]", "", "gpt2").status().message()),
              HasSubstr("has no tokens"));
  EXPECT_THAT(std::string(ParseVocabAndMerges(R"({"a": 0})", "a  b\n", "gpt2").status().message()),
              HasSubstr("is not 'LEFT RIGHT'"));
}

TEST(LoadTest, FindsTheFilesOfAFolderAndNamesThem) {
  const TestDir dir;
  EXPECT_THAT(std::string(LoadTokenizer(dir.path()).status().message()),
              AllOf(HasSubstr(dir.path()), HasSubstr("no tokenizer.json")));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(dir.path(), "vocab.json"), R"({"a": 0, "b": 1, "ab": 2})").ok());
  EXPECT_EQ(LoadTokenizer(dir.path(), "gpt2").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(dir.path(), "merges.txt"), "a b\n").ok());
  EXPECT_TRUE(LoadTokenizer(dir.path(), "gpt2").ok());
  EXPECT_TRUE(LoadTokenizer(JoinPath(dir.path(), "merges.txt"), "gpt2").ok());
  EXPECT_THAT(std::string(LoadTokenizer(dir.path()).status().message()),
              HasSubstr("vocab.json with merges.txt has a vocabulary"));
  const std::string json = JoinPath(dir.path(), "tokenizer.json");
  ASSERT_TRUE(WriteFileAtomically(json, kJson).ok());
  EXPECT_EQ((*LoadTokenizer(dir.path()))->vocabulary(), 7u);
  ASSERT_TRUE(WriteFileAtomically(json, "{}").ok());
  EXPECT_THAT(std::string(LoadTokenizer(json).status().message()), HasSubstr(absl::StrCat(json, " has ")));
}

}  // namespace
}  // namespace atl
