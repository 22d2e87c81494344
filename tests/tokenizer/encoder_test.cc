#include "tokenizer/bpe_encoder.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tokenizer/small_model.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<BpeTokenizer> Make(BpeModel model) {
  auto tokenizer = BpeTokenizer::Create(std::move(model));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::vector<TokenId> Encode(const BpeTokenizer& tokenizer, std::string_view text,
                            InvalidUtf8 invalid = InvalidUtf8::kReplace) {
  std::vector<TokenId> tokens;
  BpeEncoder(tokenizer, invalid).Encode(text, tokens);
  return tokens;
}

/// The definition, with a search of all pairs for each merge.
std::vector<TokenId> Slowly(const Vocabulary& vocabulary, std::string_view piece) {
  std::vector<TokenId> tokens;
  for (const char c : piece) tokens.push_back(static_cast<uint8_t>(c));
  while (true) {
    MergeKey best = kNoMerge;
    size_t at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const MergeKey merge = vocabulary.pairs().Find(tokens[i], tokens[i + 1]);
      if (RankOf(merge) < RankOf(best)) {
        best = merge;
        at = i;
      }
    }
    if (best == kNoMerge) return tokens;
    tokens[at] = ResultOf(best);
    tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(PieceMergerTest, ShortAndLongPiecesFollowTheDefinition) {
  // "abab" comes before its parts, so that a merge makes an earlier one possible.
  BpeModel model = SmallModel({"abab", "ab", "ba", "aa", "aba", "bb", "aab", "aaaa", "babab", "bba", "cab"});
  const auto vocabulary = Vocabulary::Create(model);
  ASSERT_TRUE(vocabulary.ok());
  PieceMerger merger(**vocabulary, std::nullopt);
  std::mt19937 random(7);
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    std::string piece;
    for (size_t i = 0; i < bytes; ++i) piece.push_back("aabbc"[random() % 5]);
    std::vector<TokenId> tokens(bytes);
    tokens.resize(merger.Merge(piece, tokens.data()));
    ASSERT_EQ(tokens, Slowly(**vocabulary, piece)) << piece;
  }
}

TEST(PieceMergerTest, AMegabyteOfOneLetterIsMerged) {
  BpeModel model = SmallModel({"aa", "aaaa", "aaaaaaaa"});
  const auto vocabulary = Vocabulary::Create(model);
  ASSERT_TRUE(vocabulary.ok());
  const std::string piece((size_t{1} << 20) + 5, 'a');
  std::vector<TokenId> tokens(piece.size());
  tokens.resize(PieceMerger(**vocabulary, std::nullopt).Merge(piece, tokens.data()));
  EXPECT_EQ(tokens.size(), (size_t{1} << 17) + 2);
  EXPECT_EQ(tokens.front(), 258u);
  EXPECT_EQ(tokens.back(), 97u);
}

TEST(BpeEncoderTest, RulesMergeInTheirOwnOrder) {
  BpeModel model = SmallModel({"ab", "bc", "abc"});
  EXPECT_THAT(Encode(*Make(model), "abcx"), ElementsAre(258, 'x'));
  model.order = MergeOrder::kByRule;
  model.whole_pieces = false;
  model.merges = {{'b', 'c', 257}, {'a', 'b', 256}};
  EXPECT_THAT(Encode(*Make(model), "abc"), ElementsAre('a', 257));
  model.whole_pieces = true;
  EXPECT_THAT(Encode(*Make(model), "abc"), ElementsAre(258));
}

TEST(BpeEncoderTest, SpecialTokensAreTextAndOthersAreFound) {
  BpeModel model = SmallModel({"<|"});
  model.added = {{.id = 300, .content = "<|endoftext|>", .special = true},
                 {.id = 301, .content = "<t>", .special = false},
                 {.id = 302, .content = "<t>>", .special = false}};
  const auto tokenizer = Make(model);
  EXPECT_EQ(tokenizer->end_of_text(), 300u);
  EXPECT_EQ(tokenizer->vocabulary(), 303u);
  EXPECT_THAT(Encode(*tokenizer, "a<t><t>>"), ElementsAre('a', 301, 302));
  const auto text = Encode(*tokenizer, "<|endoftext|>");
  EXPECT_EQ(text.front(), 256u);
  EXPECT_EQ(std::ranges::count(text, 300u), 0);
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{300, 301, 9999}), "<|endoftext|><t>\ufffd");
}

TEST(BpeEncoderTest, AddedTokensAreFoundInTheOrderOfTokenizers) {
  BpeModel model = SmallModel({});
  model.added = {{.id = 300, .content = "ab", .special = false, .normalized = true},
                 {.id = 301, .content = "bc", .special = false},
                 {.id = 302, .content = "<|x|>", .special = true},
                 {.id = 303, .content = "x", .special = false}};
  const auto tokenizer = Make(model);
  EXPECT_THAT(Encode(*tokenizer, "abc"), ElementsAre('a', 301)) << "first those that are not normalized";
  EXPECT_THAT(Encode(*tokenizer, "abd"), ElementsAre(300, 'd'));
  EXPECT_THAT(Encode(*tokenizer, "x<|x|>"), ElementsAre(303, '<', '|', 'x', '|', '>'))
      << "a special token hides those inside";
}

TEST(BpeEncoderTest, InvalidBytesAreReplacedOrKept) {
  const auto tokenizer = Make(SmallModel({"\ufffd"}));
  EXPECT_THAT(Encode(*tokenizer, "a\xff"), ElementsAre('a', 256));
  EXPECT_THAT(Encode(*tokenizer, "a\xff", InvalidUtf8::kKeep), ElementsAre('a', 255));
}

TEST(BpeEncoderTest, BytesWithoutATokenAreLeftOutOrUnknown) {
  BpeModel model = SmallModel({"<unk>"});
  model.tokens[0x07].clear();
  model.whole_pieces = false;
  EXPECT_FALSE(Make(model)->lossless());
  EXPECT_THAT(Encode(*Make(model), "a\x07!"), ElementsAre('a', '!'));
  model.unknown = 256;
  EXPECT_THAT(Encode(*Make(model), "a\x07!"), ElementsAre('a', 256, '!'));
}

TEST(BpeEncoderTest, PartsOfATextGiveTheTokensOfTheWhole) {
  BpeModel model = SmallModel({"\n\n", "  ", "the", "in", " \n"}, Pattern::kCl100kTiktoken);
  model.added = {{.id = 300, .content = "<t>", .special = false}};
  const auto tokenizer = Make(model);
  std::mt19937 random(3);
  constexpr std::string_view kParts[] = {"the",    "\n", "  ",   "in", "<t>",  "\xff",
                                         "\u00e9", "1",  "\r\n", "'s", "\n\n", "<t"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) text += kParts[random() % std::size(kParts)];
    BpeEncoder encoder(*tokenizer);
    std::vector<TokenId> tokens;
    std::string waiting;
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = 1 + random() % 9;
      waiting += text.substr(at, bytes);
      at += bytes;
      waiting.erase(0, encoder.EncodePrefix(waiting, tokens));
    }
    encoder.Encode(waiting, tokens);
    ASSERT_EQ(tokens, Encode(*tokenizer, text)) << text;
  }
}

TEST(BpeEncoderTest, PartsBetweenCutsHaveTheTokensOfTheWhole) {
  const auto tokenizer = Make(SmallModel({"th", "the", "\n\n", "in"}));
  const std::string text = "the\n\n the\nin  \nthe \n\nthe 1\n\n\nin";
  std::vector<size_t> cuts;
  for (size_t cut = tokenizer->LastCut(text); cut > 0; cut = tokenizer->LastCut(text.substr(0, cut))) {
    cuts.insert(cuts.begin(), cut);
  }
  EXPECT_THAT(cuts, ::testing::ElementsAre(10, 15, 21, 29));
  cuts.push_back(text.size());
  std::vector<TokenId> tokens;
  size_t begin = 0;
  for (const size_t end : cuts) {
    BpeEncoder(*tokenizer).EncodePart(std::string_view(text).substr(begin), end - begin, tokens);
    begin = end;
  }
  EXPECT_EQ(tokens, Encode(*tokenizer, text));
  EXPECT_EQ(tokenizer->LastCut("no line end"), 0u);
  EXPECT_EQ(tokenizer->LastCut("no letter\n"), 0u);
}

TEST(BpeTokenizerTest, ImpossibleModelsAreRejected) {
  EXPECT_THAT(std::string(BpeTokenizer::Create(SmallModel({"ab", "ab"})).status().message()),
              ::testing::HasSubstr("same bytes for the tokens 256 and 257"));
  BpeModel model = SmallModel({});
  model.added = {{.id = 65, .content = "x", .special = true}};
  EXPECT_THAT(std::string(BpeTokenizer::Create(model).status().message()),
              ::testing::HasSubstr("which another token has"));
  model.added = {{.id = 300, .content = "x", .special = true}, {.id = 300, .content = "y", .special = true}};
  EXPECT_THAT(std::string(BpeTokenizer::Create(model).status().message()), ::testing::HasSubstr("twice"));
}

}  // namespace
}  // namespace atl
