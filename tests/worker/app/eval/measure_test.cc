// What is made of scores: windows of texts, chosen answers, the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "worker/app/eval/choice_scores.h"
#include "worker/app/eval/report.h"
#include "worker/app/eval/text_loss.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextWindowTest, ScoresEveryTokenButTheFirstOnce) {
  for (const uint64_t tokens : {0, 1, 2, 8, 9, 10, 16, 17, 40}) {
    for (const uint32_t stride : {1U, 3U, 8U}) {
      SCOPED_TRACE(testing::Message() << tokens << " tokens, stride " << stride);
      uint64_t scored = 1;
      for (uint64_t i = 0;; ++i) {
        const auto window = WindowOf(tokens, 8, stride, i);
        if (!window) break;
        EXPECT_EQ(window->begin + window->first, scored) << "the next one";
        EXPECT_GE(window->first, 1U);
        EXPECT_LE(window->tokens, 9U);
        EXPECT_LE(window->begin + window->tokens, tokens);
        // It sees as much as the context has room for.
        EXPECT_TRUE(window->begin == 0 || window->tokens == 9U);
        scored = window->begin + window->tokens;
      }
      EXPECT_EQ(scored, std::max<uint64_t>(tokens, 1));
    }
  }
}

/// A model that knows how likely a token is by the one before it: -(a + b) / 10.
Scorer Sum(uint32_t context) {
  return {
      .context = context,
      .score = [context](std::span<const ScoreRequest> requests) -> absl::StatusOr<std::vector<TokenScores>> {
        std::vector<TokenScores> scores;
        for (const ScoreRequest& request : requests) {
          EXPECT_LE(request.tokens.size(), context + 1);
          TokenScores& score = scores.emplace_back();
          for (size_t i = request.first; i < request.tokens.size(); ++i) {
            score.log_probabilities.push_back(-static_cast<float>(request.tokens[i - 1] + request.tokens[i]) /
                                              10);
          }
        }
        return scores;
      }};
}

TEST(TextLossTest, AddsUpTheWindows) {
  std::vector<TokenId> text;
  for (uint32_t i = 0; i < 1000; ++i) text.push_back(i * i % 17);
  double expected = 0;
  for (size_t i = 1; i < text.size(); ++i) expected += (text[i - 1] + text[i]) / 10.0;
  std::vector<TokenId> seen;
  uint64_t last = 0;
  const TokenText source = {.tokens = text.size(), .read = [&](uint64_t first, std::span<TokenId> out) {
                              std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(first), out.size(),
                                          out.begin());
                              return absl::OkStatus();
                            }};
  for (const uint32_t stride : {3U, 8U}) {
    seen.clear();
    const auto loss = MeasureText(
        source, stride, Sum(8),
        [&](std::span<const TokenId> t) { seen.insert(seen.end(), t.begin(), t.end()); },
        [&](uint64_t done) { last = done; });
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(loss->tokens, 999U);
    EXPECT_EQ(last, 999U);
    EXPECT_NEAR(loss->total, expected, 1e-3);
    EXPECT_EQ(seen, std::vector<TokenId>(text.begin() + 1, text.end()));
  }
}

TEST(TextBytesTest, CountsTheTextOfTokens) {
  const ByteTokenizer tokenizer;
  const std::vector<TokenId> ends = {0};
  TextBytes bytes(tokenizer, ends);
  bytes.Add(std::vector<TokenId>{'a', 0, 200, 300});
  EXPECT_EQ(bytes.bytes(), 2U) << "the end of a text is none of it, and 300 no token";
}

TEST(ChoiceTest, DividesContextAndAnswer) {
  const ByteTokenizer tokenizer;
  const ChoiceTokens tokens =
      EncodeQuestion(tokenizer, {.context = "ab ", .answers = {"c", " d"}, .lengths = {1, 1}, .right = 1});
  EXPECT_THAT(tokens.context, ElementsAre('a', 'b'));
  EXPECT_THAT(tokens.answers, ElementsAre(ElementsAre(' ', 'c'), ElementsAre(' ', ' ', 'd')));
}

TEST(ChoiceTest, ScoresByTheSumAndByTheLength) {
  // The first answer has the larger sum, the second one the larger sum for its length.
  const std::vector<ChoiceTokens> questions = {
      {.context = {1}, .answers = {{5}, {1, 1, 1, 1, 1}}, .lengths = {1, 5}, .right = 0},
      {.context = {1}, .answers = {{5}, {1, 1, 1, 1, 1}}, .lengths = {1, 5}, .right = 1}};
  uint64_t last = 0;
  const auto outcomes = ScoreChoices(questions, Sum(8), [&](uint64_t done) { last = done; });
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(last, 2U);
  EXPECT_TRUE((*outcomes)[0].right);
  EXPECT_FALSE((*outcomes)[0].right_by_length);
  EXPECT_FALSE((*outcomes)[1].right);
  EXPECT_TRUE((*outcomes)[1].right_by_length);
}

TEST(ChoiceTest, LeavesOutTheOldestOfALongContext) {
  std::vector<ChoiceTokens> questions = {
      {.context = {9, 9, 9, 2, 3}, .answers = {{4, 4}, {5, 5}}, .lengths = {2, 2}, .right = 0}};
  std::set<std::vector<TokenId>> seen;
  Scorer scorer = Sum(4);
  scorer.score = [&, inner = scorer.score](std::span<const ScoreRequest> requests) {
    for (const ScoreRequest& request : requests) seen.emplace(request.tokens.begin(), request.tokens.end());
    return inner(requests);
  };
  ASSERT_TRUE(ScoreChoices(questions, scorer, [](uint64_t) {}).ok());
  EXPECT_THAT(seen, ElementsAre(ElementsAre(9, 2, 3, 4, 4), ElementsAre(9, 2, 3, 5, 5)));
  questions[0].answers[1] = {1, 1, 1, 1, 1};
  EXPECT_THAT(std::string(ScoreChoices(questions, scorer, [](uint64_t) {}).status().message()),
              HasSubstr("answer 1 of question 0 has 5 tokens, and the model sees 4 at once"));
}

TEST(ChoiceTest, ErrorIsThatOfASample) {
  const Accuracy accuracy = AccuracyOf(3, 10);
  EXPECT_DOUBLE_EQ(accuracy.share, 0.3);
  EXPECT_NEAR(accuracy.error, std::sqrt(0.3 * 0.7 / 9), 1e-12);
  EXPECT_EQ(AccuracyOf(1, 1).error, 0);
}

std::vector<ModelResult> TwoModels() {
  const TaskResult loss = {.task = "data",
                           .file = "tokens",
                           .unit = "tokens",
                           .count = 99,
                           .measures = {{.key = "loss", .label = "loss", .value = 1.5},
                                        {.key = "bits_per_byte", .label = "bits per byte"}},
                           .notes = {"why"}};
  const TaskResult choice = {.task = "hellaswag",
                             .file = "h.jsonl",
                             .unit = "questions",
                             .count = 4,
                             .measures = {{.key = "acc", .label = "accuracy", .value = 0.5, .error = 0.25}},
                             .subjects = {{"anatomy", {{.key = "acc", .label = "", .value = 1.0}}}}};
  std::vector<ModelResult> models = {{.model = "before", .tasks = {loss, choice}},
                                     {.model = "a longer name", .tasks = {loss, choice}}};
  models[1].tasks[0].count = 98;
  return models;
}

TEST(ReportTest, PutsModelsSideBySide) {
  EXPECT_EQ(ReportTable(TwoModels()),
            "                         before   a longer name\n"
            "tokens\n"
            "  tokens                     99              98\n"
            "  loss                   1.5000          1.5000\n"
            "  bits per byte         unknown         unknown\n"
            "h.jsonl  (4 questions)\n"
            "  accuracy       0.5000 ±0.2500  0.5000 ±0.2500\n"
            "why\n");
}

TEST(ReportTest, LeavesOutOfJsonWhatIsNotKnown) {
  const nlohmann::json json = nlohmann::json::parse(ReportJson(TwoModels()));
  EXPECT_EQ(json["models"][1]["model"], "a longer name");
  const nlohmann::json& loss = json["models"][0]["tasks"][0];
  EXPECT_EQ(loss["tokens"], 99);
  EXPECT_EQ(loss["loss"], 1.5);
  EXPECT_FALSE(loss.contains("bits_per_byte"));
  EXPECT_EQ(loss["notes"], nlohmann::json::array({"why"}));
  const nlohmann::json& choice = json["models"][0]["tasks"][1];
  EXPECT_EQ(choice["acc_stderr"], 0.25);
  EXPECT_EQ(choice["subjects"]["anatomy"]["acc"], 1.0);
}

}  // namespace
}  // namespace atl
