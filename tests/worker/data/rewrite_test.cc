#include "worker/data/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/dataset.h"
#include "worker/data/dataset_writer.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void Ignore(uint64_t, uint64_t) {}

std::vector<TokenId> Tokens(size_t count, TokenId first) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Contents {
  std::vector<TokenId> train, held_out;
  size_t files = 0;
  std::optional<TokenId> end_of_text;
};

Contents Read(const std::string& folder) {
  const auto set = Dataset::Open(folder, {50257, 1, ""});
  EXPECT_TRUE(set.ok()) << set.status();
  if (!set.ok()) return {};
  EXPECT_TRUE(set->VerifyContents().ok());
  Contents contents;
  contents.train.resize(set->train_tokens());
  EXPECT_TRUE(set->ReadTrain(0, contents.train).ok());
  contents.held_out = set->validation().Tokens();
  contents.files = set->description().train.size();
  contents.end_of_text = set->description().end_of_text;
  return contents;
}

class RewriteTest : public ::testing::Test {
 protected:
  /// A dataset of `train` tokens from `first` on and `held_out` tokens behind them.
  std::string Make(size_t train, size_t held_out, TokenId first,
                   const std::string& tokenizer = "gpt2") const {
    const std::string folder = In(tokenizer + std::to_string(first));
    EXPECT_TRUE(CreateDirs(folder).ok());
    DatasetWriter writer({.folder = folder,
                          .tokenizer = tokenizer,
                          .vocabulary = 50257,
                          .end_of_text = 50256,
                          .tokens_per_file = 7});
    EXPECT_TRUE(writer.AddTrain(Tokens(train, first)).ok());
    EXPECT_TRUE(writer.AddHeldOut(Tokens(held_out, first + static_cast<TokenId>(train))).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return folder;
  }
  std::string In(const std::string& name) const { return JoinPath(folder_, name); }

  const std::string folder_ = testing::TemporaryFolder();
};

TEST_F(RewriteTest, SplitsIntoFilesOfAnotherSize) {
  const std::string from = Make(20, 5, 100), out = In("new/out");
  uint64_t last = 0;
  const auto made =
      Rewrite({.folders = {from}, .out = out, .tokens_per_file = 9}, [&](uint64_t done, uint64_t total) {
        EXPECT_EQ(total, 25u);
        last = done;
      });
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(last, 25u);
  const Contents contents = Read(out);
  EXPECT_EQ(contents.train, Tokens(20, 100));
  EXPECT_EQ(contents.held_out, Tokens(5, 120));
  EXPECT_EQ(contents.files, 3u);
  EXPECT_EQ(contents.end_of_text, 50256u);
}

TEST_F(RewriteTest, HoldsOutAnotherShare) {
  const std::string from = Make(20, 5, 100), out = In("out");
  ASSERT_TRUE(Rewrite({.folders = {from}, .out = out, .held_out_share = 0.4}, Ignore).ok());
  const Contents contents = Read(out);
  EXPECT_EQ(contents.train, Tokens(15, 100));
  EXPECT_EQ(contents.held_out, Tokens(10, 115));
}

TEST_F(RewriteTest, MergesTextsInOrder) {
  const std::string out = In("out");
  ASSERT_TRUE(Rewrite({.folders = {Make(10, 2, 500), Make(3, 4, 0)}, .out = out}, Ignore).ok());
  const Contents contents = Read(out);
  std::vector<TokenId> train = Tokens(10, 500), held_out = Tokens(2, 510);
  for (const TokenId token : {0, 1, 2}) train.push_back(token);
  for (const TokenId token : {3, 4, 5, 6}) held_out.push_back(token);
  EXPECT_EQ(contents.train, train);
  EXPECT_EQ(contents.held_out, held_out);
  EXPECT_EQ(contents.files, 1u);
}

TEST_F(RewriteTest, RejectsWhatDoesNotFit) {
  const std::string folder = Make(10, 2, 0), out = In("out");
  const auto fault = [](const RewriteOptions& options) {
    return std::string(Rewrite(options, Ignore).status().message());
  };
  EXPECT_THAT(fault({.folders = {folder, Make(10, 2, 9, "llama3")}, .out = out}),
              AllOf(HasSubstr("has the tokenizer gpt2"), HasSubstr("has llama3")));
  EXPECT_THAT(fault({.folders = {folder}, .out = folder}), HasSubstr("already holds a dataset"));
  EXPECT_THAT(fault({.folders = {folder}, .out = out, .held_out_share = 0.99}), HasSubstr("too few"));
  EXPECT_THAT(fault({.folders = {folder_}, .out = out}), HasSubstr("no meta.json"));
  EXPECT_FALSE(FileExists(out));
  EXPECT_FALSE(FileExists(out + ".partial"));
}

}  // namespace
}  // namespace atl
