#include "worker/data/adopt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/digest.h"
#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/dataset.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;
using testing::TokenBytes;
using testing::WriteBytes;

void Ignore(uint64_t, uint64_t) {}

std::vector<TokenId> Tokens(size_t count, uint16_t first) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

void WriteShard(const std::string& folder, const std::string& name, const std::vector<TokenId>& tokens) {
  WriteBytes(JoinPath(folder, name), TokenBytes(tokens));
}

absl::StatusOr<Dataset> AdoptAndOpen(const AdoptOptions& options, uint32_t context) {
  const auto adopted = Adopt(options, Ignore);
  if (!adopted.ok()) return adopted.status();
  return Dataset::Open(options.folder,
                       {.vocabulary = options.vocabulary, .context = context, .tokenizer = "gpt2"});
}

std::string AdoptMessage(const AdoptOptions& options) {
  return std::string(Adopt(options, Ignore).status().message());
}

TEST(AdoptTest, TakesTrainingAndValidationShardsAsTheyAre) {
  const std::string folder = TemporaryFolder();
  WriteShard(folder, "fineweb_train_000002.bin", Tokens(10, 200));
  WriteShard(folder, "fineweb_train_000001.bin", Tokens(10, 100));
  WriteShard(folder, "fineweb_val_000000.bin", Tokens(8, 50249));
  const auto dataset = AdoptAndOpen({.folder = folder, .tokenizer = "gpt2", .vocabulary = 50257}, 4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->VerifyContents().ok()) << dataset->VerifyContents();
  EXPECT_EQ(dataset->description().tokenizer, "gpt2");
  EXPECT_EQ(dataset->description().vocabulary, 50257u);
  EXPECT_EQ(dataset->train_tokens(), 20u);
  std::vector<TokenId> across(4);
  EXPECT_TRUE(dataset->ReadTrain(8, across).ok());
  EXPECT_THAT(across, ElementsAre(108, 109, 200, 201));
  EXPECT_EQ(dataset->validation().size(), 8u);
  EXPECT_EQ(dataset->validation().Tokens().back(), 50256u);
  // The digest is of the tokens, without the header.
  const std::vector<TokenId> shard = Tokens(10, 100);
  const std::vector<uint16_t> first(shard.begin(), shard.end());
  EXPECT_EQ(dataset->description().train[0].sha256,
            Sha256Hex(std::string(reinterpret_cast<const char*>(first.data()), 20)));
}

TEST(AdoptTest, HoldsOutTheEndWithoutAValidationShard) {
  const std::string folder = TemporaryFolder();
  WriteShard(folder, "train_0.bin", Tokens(60, 0));
  WriteShard(folder, "train_1.bin", Tokens(40, 1000));
  const AdoptOptions options = {.folder = folder,
                                .tokenizer = "gpt2",
                                .vocabulary = 50257,
                                .validation_name = "",
                                .validation_fraction = 0.1};
  const auto dataset = AdoptAndOpen(options, 4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->VerifyContents().ok()) << dataset->VerifyContents();
  EXPECT_EQ(dataset->train_tokens(), 90u);
  EXPECT_EQ(dataset->validation().size(), 10u);
  EXPECT_EQ(dataset->validation().Tokens().front(), 1030u) << "never trained on";
  std::vector<TokenId> last(2);
  EXPECT_TRUE(dataset->ReadTrain(88, last).ok());
  EXPECT_THAT(last, ElementsAre(1028, 1029));
  // A shard that was cut, or grew, is noticed.
  WriteShard(folder, "train_1.bin", Tokens(41, 1000));
  EXPECT_THAT(std::string(Dataset::Open(folder, {50257, 4, "gpt2"}).status().message()),
              HasSubstr("41 tokens, but meta.json says 40"));
}

TEST(AdoptTest, HoldsOutAWholeShardThatIsShorterThanThePart) {
  const std::string folder = TemporaryFolder();
  WriteShard(folder, "a.bin", Tokens(95, 0));
  WriteShard(folder, "b.bin", Tokens(5, 500));
  const auto dataset = AdoptAndOpen({.folder = folder,
                                     .tokenizer = "gpt2",
                                     .vocabulary = 50257,
                                     .validation_name = "",
                                     .validation_fraction = 0.2},
                                    4);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->description().train.size(), 1u);
  EXPECT_EQ(dataset->train_tokens(), 95u);
  EXPECT_THAT(dataset->validation().Tokens(), ElementsAre(500, 501, 502, 503, 504));
}

TEST(AdoptTest, SaysWhatIsWrongAndWhatToDo) {
  const std::string folder = TemporaryFolder();
  AdoptOptions options = {.folder = folder, .tokenizer = "gpt2", .vocabulary = 256};
  EXPECT_THAT(AdoptMessage(options), HasSubstr("no training shard"));
  WriteShard(folder, "x_train.bin", {1, 2, 3, 300});
  EXPECT_THAT(AdoptMessage(options), AllOf(HasSubstr("token 300"), HasSubstr("--vocabulary")));
  options.vocabulary = 50257;
  WriteBytes(JoinPath(folder, "x_val.bin"), "text, not tokens");
  EXPECT_THAT(AdoptMessage(options), HasSubstr("x_val.bin"));
  WriteShard(folder, "y_val.bin", {1, 2});
  EXPECT_THAT(AdoptMessage(options), AllOf(HasSubstr("x_val.bin, y_val.bin"), HasSubstr("--validation")));
  options.validation_name = "z_val.bin";
  EXPECT_THAT(AdoptMessage(options), HasSubstr("z_val.bin"));
  options.validation_name = "y_val.bin";
  EXPECT_TRUE(Adopt(options, Ignore).ok());
  EXPECT_THAT(AdoptMessage(options), HasSubstr("already has a meta.json"));
  options.tokenizer = "GPT 2\n";
  EXPECT_EQ(Adopt(options, Ignore).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AdoptTest, RejectsShardsWithoutTokens) {
  const std::string folder = TemporaryFolder();
  const AdoptOptions options = {.folder = folder, .tokenizer = "gpt2", .vocabulary = 50257};
  WriteShard(folder, "x_train.bin", {});
  WriteShard(folder, "x_val.bin", {1, 2, 3});
  EXPECT_THAT(AdoptMessage(options), HasSubstr("the training shards hold no tokens"));
  WriteShard(folder, "x_train.bin", {1, 2, 3});
  WriteShard(folder, "x_val.bin", {});
  EXPECT_THAT(AdoptMessage(options), HasSubstr("the validation shards hold no tokens"));
  EXPECT_FALSE(FileExists(JoinPath(folder, "meta.json")));
}

TEST(AdoptTest, ReadsShardsOfLlama3) {
  const std::string folder = TemporaryFolder();
  std::vector<TokenId> tokens = Tokens(100, 0);
  tokens[3] = 128255;
  WriteBytes(JoinPath(folder, "fineweb_train_000001.bin"), TokenBytes(20240801, 7, 100, tokens));
  EXPECT_THAT(AdoptMessage({.folder = folder, .tokenizer = "llama3", .vocabulary = 128255}),
              AllOf(HasSubstr("token 128255 at position 3"), HasSubstr("vocabulary of 128255")));
  EXPECT_THAT(AdoptMessage({.folder = folder, .tokenizer = "llama3", .vocabulary = (1 << 20) + 1}),
              HasSubstr("vocabulary 1048577: expected the tokenizer's number of tokens, 1 to 1048576"));
  const auto adopted = Adopt({.folder = folder, .tokenizer = "llama3", .vocabulary = 128256}, Ignore);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  const auto dataset = Dataset::Open(folder, {128256, 4, "llama3"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_TRUE(dataset->VerifyContents().ok());
  std::vector<TokenId> read(6);
  ASSERT_TRUE(dataset->ReadTrain(0, read).ok());
  EXPECT_EQ(read, std::vector<TokenId>(tokens.begin(), tokens.begin() + 6));
}

TEST(AdoptTest, RejectsAPartOutsideOfItsFile) {
  const std::string folder = TemporaryFolder();
  WriteShard(folder, "train.bin", Tokens(100, 0));
  const auto adopted = Adopt({.folder = folder, .tokenizer = "gpt2", .vocabulary = 50257}, Ignore);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  for (const auto& [first, tokens] :
       {std::pair<uint64_t, uint64_t>{98, 5}, {~uint64_t{0}, 5}, {0, ~uint64_t{0}}}) {
    DatasetDescription changed = *adopted;
    changed.validation.first = first;
    changed.validation.tokens = tokens;
    changed.fingerprint = Fingerprint(changed);
    WriteBytes(JoinPath(folder, "meta.json"), DescriptionToJson(changed));
    EXPECT_THAT(std::string(Dataset::Open(folder, {50257, 1, "gpt2"}).status().message()),
                HasSubstr("meta.json lists tokens"));
  }
}

}  // namespace
}  // namespace atl
