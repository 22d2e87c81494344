// Log-probabilities of given tokens (TorchReplica::Score). tests/worker/app/architectures_test.cc compares
// them with transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tests/worker/torch/tiny_run.h"
#include "worker/data/dataset.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using testing::TinyDataset;
using testing::TinyReplica;
using testing::WholeModel;

constexpr size_t kContext = 16;

class ScoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TorchReplicaOptions options = TinyReplica(TinyDataset("score"));
    options.run.model.gpt().dropout = 0.1;  // must not act
    auto made = CreateTorchReplica(options);
    ASSERT_TRUE(made.ok()) << made.status();
    replica_ = *std::move(made);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(replica_->InnerStep(3e-3).ok());
    text_.resize(3 * kContext);
    for (size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<TokenId>((i * i * 7 + i * 3) % 256);
  }

  std::span<const TokenId> Text(size_t first, size_t count) const {
    return std::span(text_).subspan(first, count);
  }
  TokenScores Alone(const ScoreRequest& request, const ScoreOptions& options = {}) {
    const auto scores = replica_->Score(std::span(&request, 1), options);
    EXPECT_TRUE(scores.ok()) << scores.status();
    return scores.ok() ? scores->front() : TokenScores();
  }
  std::string Error(const ScoreRequest& request) {
    return std::string(replica_->Score(std::span(&request, 1), {}).status().message());
  }

  std::unique_ptr<TorchReplica> replica_;
  std::vector<TokenId> text_;
};

TEST_F(ScoreTest, TextsOfOtherLengthsChangeNothing) {
  const std::vector<ScoreRequest> requests = {{.tokens = Text(0, 3)},
                                              {.tokens = Text(3, kContext + 1)},
                                              {.tokens = Text(1, 1)},
                                              {.tokens = Text(8, 12), .first = 10},
                                              {.tokens = Text(20, 7)}};
  for (const uint32_t ranked : {0U, 2U}) {
    const auto together = replica_->Score(requests, {.ranked = ranked});
    ASSERT_TRUE(together.ok()) << together.status();
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      const TokenScores alone = Alone(requests[i], {.ranked = ranked});
      const std::vector<float>& found = (*together)[i].log_probabilities;
      ASSERT_EQ(found.size(), requests[i].tokens.size() - requests[i].first);
      ASSERT_EQ(alone.log_probabilities.size(), found.size());
      for (size_t t = 0; t < found.size(); ++t) {
        EXPECT_NEAR(found[t], alone.log_probabilities[t], 1e-5);
        EXPECT_LT(found[t], 0);
      }
      // And the place after the text, where there is one.
      const size_t places = ranked == 0 ? 0 : found.size() + (requests[i].tokens.size() <= kContext ? 1 : 0);
      EXPECT_EQ((*together)[i].ranked.size(), places);
    }
  }
}

TEST_F(ScoreTest, RanksTheTokensOfEachPlace) {
  const TokenScores scores = Alone({.tokens = Text(0, 5)}, {.ranked = 256});
  ASSERT_EQ(scores.ranked.size(), 5U);
  for (size_t place = 0; place < 5; ++place) {
    double total = 0;
    for (size_t i = 0; i < 256; ++i) {
      const RankedToken& one = scores.ranked[place][i];
      total += std::exp(static_cast<double>(one.log_probability));
      if (i > 0) {
        EXPECT_LE(one.log_probability, scores.ranked[place][i - 1].log_probability);
      }
      if (place < 4 && one.token == text_[place + 1]) {
        EXPECT_EQ(one.log_probability, scores.log_probabilities[place]) << "the same bits";
      }
    }
    EXPECT_NEAR(total, 1, 1e-5);
  }
  // The place after the text is where Generate draws from.
  std::vector<TokenId> drawn;
  ASSERT_TRUE(replica_
                  ->Generate(Text(0, 5), {.tokens = 1, .sampling = {.temperature = 0}},
                             [&](TokenId token) {
                               drawn.push_back(token);
                               return true;
                             })
                  .ok());
  EXPECT_THAT(drawn, ::testing::ElementsAre(scores.ranked[4][0].token));
}

TEST_F(ScoreTest, ThePlacesOfAWindowHaveTheLossOfAnEvaluation) {
  const auto dataset = Dataset::Open(::testing::TempDir() + "/score",
                                     {.vocabulary = 256, .context = kContext, .tokenizer = "bytes"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const std::vector<TokenId> held_out = dataset->validation().Tokens();
  std::vector<ScoreRequest> windows;
  for (size_t first = 0; first + kContext < held_out.size(); first += kContext) {
    windows.push_back({.tokens = std::span(held_out).subspan(first, kContext + 1)});
  }
  const auto scores = replica_->Score(windows, {});
  ASSERT_TRUE(scores.ok()) << scores.status();
  double total = 0;
  for (const TokenScores& window : *scores) {
    total = std::accumulate(window.log_probabilities.begin(), window.log_probabilities.end(), total);
  }
  const auto evaluation = replica_->Evaluate(1000000);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_EQ(evaluation->tokens, windows.size() * kContext);
  EXPECT_NEAR(-total / static_cast<double>(evaluation->tokens), evaluation->loss, 1e-4);
}

TEST_F(ScoreTest, SaysWhatCannotBeScored) {
  EXPECT_THAT(Error({.tokens = Text(0, kContext + 2)}), HasSubstr("a text of 18 tokens"));
  EXPECT_THAT(Error({.tokens = {}}), HasSubstr("a text of 0 tokens"));
  EXPECT_THAT(Error({.tokens = Text(0, 3), .first = 4}), HasSubstr("no score at token 4"));
  EXPECT_THAT(Error({.tokens = Text(0, 3), .first = 0}), HasSubstr("no score at token 0"));
  text_[2] = 256;
  EXPECT_THAT(Error({.tokens = Text(0, 3)}), HasSubstr("token 256 is outside the model's vocabulary of 256"));
  text_[2] = 2;
  const FragmentLayout layout = WholeModel(replica_->manifest());
  ASSERT_TRUE(replica_
                  ->WriteFragment(
                      layout, std::vector<float>(layout.elements, std::numeric_limits<float>::quiet_NaN()))
                  .ok());
  EXPECT_THAT(Error({.tokens = Text(0, 3)}), HasSubstr("not finite"));
}

}  // namespace
}  // namespace atl
