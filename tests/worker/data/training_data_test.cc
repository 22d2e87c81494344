#include "worker/data/training_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "common/file.h"
#include "tests/worker/data/temporary_folder.h"
#include "worker/data/batches.h"
#include "worker/data/dataset_writer.h"
#include "worker/data/mix.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kContext = 4;
const DatasetRequirements kAny = {50257, kContext, "gpt2", "model.gpt", SequenceBounds::kWithinFiles};

std::vector<TokenId> Tokens(size_t count, TokenId first) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class TrainingDataTest : public ::testing::Test {
 protected:
  /// Training tokens from `first` on in files of 41 tokens, and held-out ones from first + 5000 on.
  std::string Make(const std::string& name, size_t train, size_t held_out, TokenId first,
                   const std::string& tokenizer = "gpt2", std::optional<TokenId> end = 50256) const {
    const std::string folder = In(name);
    EXPECT_TRUE(CreateDirs(folder).ok());
    DatasetWriter writer({.folder = folder,
                          .tokenizer = tokenizer,
                          .vocabulary = 50257,
                          .end_of_text = end,
                          .tokens_per_file = 41});
    EXPECT_TRUE(writer.AddTrain(Tokens(train, first)).ok());
    EXPECT_TRUE(writer.AddHeldOut(Tokens(held_out, first + 5000)).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return folder;
  }
  std::string In(const std::string& name) const { return JoinPath(folder_, name); }
  std::string MixFault(const std::vector<WeightedFolder>& folders) const {
    return std::string(Mix(folders, In("mix")).status().message());
  }
  std::string OpenFault(const std::string& folder) const {
    return std::string(TrainingData::Open(folder, kAny).status().message());
  }

  const std::string folder_ = testing::TemporaryFolder();
};

TEST_F(TrainingDataTest, AMixtureNamesItsDatasetsFromItsFolderOn) {
  Make("web", 100, 20, 0);
  Make("code/python", 50, 10, 10000);
  const auto mixture = Mix({{In("web"), "0.75"}, {In("code/python"), "0.25"}}, In("mixes/first"));
  ASSERT_TRUE(mixture.ok()) << mixture.status();
  EXPECT_EQ(mixture->parts[0].folder, "../../web");
  EXPECT_EQ(mixture->parts[1].folder, "../../code/python");
  EXPECT_EQ(mixture->parts[0].weight, 3u);
  EXPECT_EQ(mixture->end_of_text, 50256u);
  // All folders may move together.
  std::filesystem::create_directory(In("elsewhere"));
  for (const char* const name : {"web", "code", "mixes"})
    std::filesystem::rename(In(name), In(std::string("elsewhere/") + name));
  const auto data = TrainingData::Open(In("elsewhere/mixes/first"), kAny);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->is_mixture());
  EXPECT_EQ(data->train_tokens(), 150u);
  EXPECT_EQ(data->fingerprint(), mixture->fingerprint);
  EXPECT_TRUE(data->VerifyContents([] { return true; }).ok());
  EXPECT_EQ(data->shares()[1].share, 0.25);
  EXPECT_EQ(data->shares()[1].tokens, 50u);
}

TEST_F(TrainingDataTest, TheFingerprintIsOfTokensAndWeights) {
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 50, 10, 10000);
  const auto fingerprint = [&](const std::vector<WeightedFolder>& folders, const std::string& name) {
    return Mix(folders, In(name))->fingerprint;
  };
  const std::string first = fingerprint({{web, "3"}, {code, "1"}}, "a");
  EXPECT_EQ(fingerprint({{web, "0.75"}, {code, "0.25"}}, "b"), first);
  EXPECT_NE(fingerprint({{web, "2"}, {code, "1"}}, "c"), first);
  EXPECT_NE(fingerprint({{code, "1"}, {web, "3"}}, "d"), first)
      << "the order of the parts is the run's order";
  EXPECT_NE(fingerprint({{web, "3"}, {Make("other", 50, 10, 10001), "1"}}, "e"), first);
}

TEST_F(TrainingDataTest, MixRejectsWhatIsNoMixture) {
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 50, 10, 10000);
  EXPECT_THAT(MixFault({{web, "1"}, {Make("llama", 50, 10, 0, "llama3"), "1"}}),
              AllOf(HasSubstr(web + " has the tokenizer gpt2"), HasSubstr("llama has llama3")));
  EXPECT_THAT(MixFault({{web, "1"}, {code, "0"}}), HasSubstr("weight '0'"));
  EXPECT_THAT(MixFault({{web, "1"}, {code, "-0.5"}}), HasSubstr("weight '-0.5'"));
  EXPECT_THAT(MixFault({{web, "1"}}), HasSubstr("at least two datasets"));
  EXPECT_THAT(MixFault({{web, "1"}, {web + "/../web", "1"}}), HasSubstr("is named twice"));
  EXPECT_THAT(MixFault({{web, "1"}, {In("absent"), "1"}}), HasSubstr("absent"));
  EXPECT_FALSE(FileExists(In("mix"))) << "nothing is left of a call that failed";
  ASSERT_TRUE(Mix({{web, "1"}, {code, "1"}}, In("inner")).ok());
  EXPECT_THAT(
      MixFault({{web, "1"}, {In("inner"), "1"}}),
      AllOf(HasSubstr("is a mixture of other datasets (../web, ../code)"), HasSubstr("name one of those")));
  EXPECT_THAT(std::string(Mix({{web, "1"}, {code, "1"}}, web).status().message()),
              HasSubstr("already holds"));
}

TEST_F(TrainingDataTest, APartThatIsMissingOrChangedIsNamed) {
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 50, 10, 10000);
  ASSERT_TRUE(Mix({{web, "1"}, {code, "1"}}, In("mix")).ok());
  std::filesystem::rename(code, In("kept"));
  EXPECT_THAT(OpenFault(In("mix")),
              AllOf(HasSubstr("mixture " + In("mix")), HasSubstr("its dataset ../code is missing")));
  Make("code", 50, 10, 10001);
  EXPECT_THAT(OpenFault(In("mix")), AllOf(HasSubstr("../code was changed"), HasSubstr("atoll-data mix")));
  EXPECT_EQ(TrainingData::Open(In("mix"), kAny).status().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(code);
  std::filesystem::rename(In("kept"), code);
  EXPECT_TRUE(TrainingData::Open(In("mix"), kAny).ok());
  const std::string meta = JoinPath(In("mix"), "meta.json");
  const std::string json = *ReadFile(meta);
  std::string damaged = json;
  damaged.replace(damaged.find("\"weight\": 1"), 11, "\"weight\": 5");
  testing::WriteBytes(meta, damaged);
  EXPECT_THAT(OpenFault(In("mix")), HasSubstr("its fingerprint does not match its contents"));
  testing::WriteBytes(meta, "{\"mixture\": [{}]}");
  EXPECT_THAT(OpenFault(In("mix")), AllOf(HasSubstr("mixture " + meta), HasSubstr("atoll-data mix")));
}

TEST_F(TrainingDataTest, AMixtureHasNoTextOfItsOwn) {
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 50, 10, 10000);
  ASSERT_TRUE(Mix({{web, "1"}, {code, "1"}}, In("mix")).ok());
  EXPECT_THAT(std::string(Dataset::Open(In("mix"), kAny).status().message()),
              HasSubstr("a mixture of other datasets (../web, ../code)"));
}

TEST_F(TrainingDataTest, EndOfTextMustBeThatOfAllParts) {
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 50, 10, 10000, "gpt2", std::nullopt);
  ASSERT_TRUE(Mix({{web, "1"}, {code, "1"}}, In("mix")).ok());
  EXPECT_EQ(TrainingData::Open(In("mix"), kAny)->end_of_text(), std::nullopt);
}

TEST_F(TrainingDataTest, SamplesComeInTheSharesAndEachPartRepeatsAtItsOwnRate) {
  // 41 + 41 + 18 tokens are 10 + 10 + 4 samples; 41 tokens are 10.
  const std::string web = Make("web", 100, 20, 0), code = Make("code", 41, 10, 10000);
  ASSERT_TRUE(Mix({{web, "1"}, {code, "3"}}, In("mix")).ok());
  const auto data = std::make_shared<const TrainingData>(*TrainingData::Open(In("mix"), kAny));
  std::map<int64_t, int> starts;
  for (uint32_t partition = 0; partition < 3; ++partition) {
    TrainingSamples samples(data, {kContext}, 1337, partition, 3);
    Batch batch;
    ASSERT_TRUE(samples.Read(0, 32, batch).ok());  // 96 samples in all: a pass over web, 7.2 over code
    for (size_t row = 0; row < 32; ++row) ++starts[batch.inputs[row * kContext]];
  }
  int of_web = 0;
  for (const auto& [start, times] : starts) {
    if (start >= 10000) {
      EXPECT_TRUE(times == 7 || times == 8) << start;
      continue;
    }
    of_web += times;
    EXPECT_EQ(times, 1) << start;
  }
  EXPECT_EQ(of_web, 24);
  EXPECT_EQ(starts.size(), 34u);
}

TEST_F(TrainingDataTest, HeldOutWindowsComeInTheSharesUntilOnePartEnds) {
  const std::string web = Make("web", 100, 21, 0), code = Make("code", 41, 13, 10000);
  ASSERT_TRUE(Mix({{web, "2"}, {code, "1"}}, In("mix")).ok());
  const auto data = std::make_shared<const TrainingData>(*TrainingData::Open(In("mix"), kAny));
  ValidationSamples samples(data, {kContext});
  Batch all, again;
  // 5 windows of web and 3 of code: web ends first.
  EXPECT_EQ(*samples.Read(0, 100, all), 8u);
  std::vector<int64_t> starts;
  for (size_t row = 0; row < 8; ++row) starts.push_back(all.inputs[row * kContext]);
  EXPECT_THAT(starts, ElementsAre(5000, 15000, 5004, 5008, 15004, 5012, 5016, 15008));
  EXPECT_EQ(*samples.Read(3, 2, again), 2u);
  EXPECT_EQ(again.inputs[0], 5008);
  EXPECT_EQ(*samples.Read(8, 2, again), 0u);
}

TEST_F(TrainingDataTest, WithinFilesEachFileNeedsAWholeSampleForOne) {
  DatasetRequirements wide = kAny;
  wide.context = 41;
  const std::string held = Make("held", 100, 60, 0);
  EXPECT_THAT(std::string(TrainingData::Open(held, wide).status().message()),
              AllOf(HasSubstr("its longest file has 41 tokens"), HasSubstr("model.gpt.context + 1 = 42"),
                    HasSubstr("data.sequences: across_files")));
  wide.sequences = SequenceBounds::kAcrossFiles;
  EXPECT_TRUE(TrainingData::Open(held, wide).ok());
}

TEST(WeightedFolderTest, TheLastSeparatorCounts) {
  EXPECT_EQ(ParseWeightedFolder("data/web=0.7")->folder, "data/web");
  EXPECT_EQ(ParseWeightedFolder("data/web:0.7")->weight, "0.7");
  EXPECT_EQ(ParseWeightedFolder("a=b:c=2")->folder, "a=b:c");
  for (const char* const text : {"data/web", "=1", "data/web="})
    EXPECT_THAT(std::string(ParseWeightedFolder(text).status().message()),
                HasSubstr("expected FOLDER=WEIGHT"));
}

}  // namespace
}  // namespace atl
