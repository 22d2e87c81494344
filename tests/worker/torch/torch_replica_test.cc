#include "worker/torch/torch_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/file.h"
#include "core/model_shape.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/data/dataset.h"
#include "worker/data/dataset_writer.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using testing::Parameters;
using testing::TinyDataset;
using testing::TinyReplica;
using testing::WholeModel;

std::unique_ptr<TorchReplica> Make(const TorchReplicaOptions& options) {
  absl::StatusOr<std::unique_ptr<TorchReplica>> replica = CreateTorchReplica(options);
  EXPECT_TRUE(replica.ok()) << replica.status();
  return replica.ok() ? *std::move(replica) : nullptr;
}

std::vector<double> Train(Replica& replica, int steps, double learning_rate = 1e-3) {
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const absl::StatusOr<InnerStepResult> step = replica.InnerStep(learning_rate);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) break;
    losses.push_back(step->loss);
  }
  return losses;
}

TEST(TorchReplicaTest, AnUntrainedModelKnowsNothing) {
  auto replica = Make(TinyReplica(TinyDataset("initial")));
  const auto evaluation = replica->Evaluate(10);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_NEAR(evaluation->loss, std::log(256.0), 0.05);
  EXPECT_GT(evaluation->tokens, 500u);
}

TEST(TorchReplicaTest, LearnsAShortText) {
  auto replica = Make(TinyReplica(TinyDataset("overfit")));
  const std::vector<double> losses = Train(*replica, 200, 3e-3);
  EXPECT_LT(losses.back(), 0.6);
  const auto evaluation = replica->Evaluate(10);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status();
  EXPECT_LT(evaluation->loss, 0.8);
}

TEST(TorchReplicaTest, KnowsWhatTrainingCosts) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("cost"));
  const ComputeCost cost = Make(options)->compute_cost();
  EXPECT_EQ(cost.flops_per_token, ShapeOf(options.run.model)->TrainingFlopsPerToken());
  EXPECT_GT(cost.peak_flops_per_second, 1e8) << "any processor multiplies faster";
  EXPECT_LT(cost.peak_flops_per_second, 1e16);
  options.dataset_folder.clear();  // a model that only writes text
  EXPECT_EQ(Make(options)->compute_cost().peak_flops_per_second, 0);
}

TEST(TorchReplicaTest, OneSeedIsOneRun) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("deterministic"));
  options.run.model.gpt().dropout = 0.1;
  auto first = Make(options);
  auto second = Make(options);
  EXPECT_EQ(Parameters(*first), Parameters(*second));
  EXPECT_EQ(Train(*first, 12), Train(*second, 12));
  EXPECT_EQ(Parameters(*first), Parameters(*second));
  options.run.seed += 1;
  EXPECT_NE(Parameters(*Make(options)), Parameters(*Make(TinyReplica(options.dataset_folder))));
}

TEST(TorchReplicaTest, FragmentsComeBackAsTheyWereWritten) {
  auto replica = Make(TinyReplica(TinyDataset("fragments")));
  const auto plan = PlanFragments(replica->manifest(), 3);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<float> whole = Parameters(*replica);
  for (const FragmentLayout& fragment : *plan) {
    std::vector<float> values(fragment.elements, 42.0f);  // what stands in the padding is not written
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + fragment.id.value());
    ASSERT_TRUE(replica->WriteFragment(fragment, values).ok());
    std::vector<float> read(fragment.elements, -1.0f);
    ASSERT_TRUE(replica->ReadFragment(fragment, read).ok());
    std::vector<float> expected(fragment.elements, 0.0f);
    for (const TensorSlot& slot : fragment.slots) {
      std::copy_n(values.begin() + static_cast<ptrdiff_t>(slot.offset), slot.elements,
                  expected.begin() + static_cast<ptrdiff_t>(slot.offset));
    }
    EXPECT_EQ(read, expected);
  }
  EXPECT_NE(Parameters(*replica), whole);
}

TEST(TorchReplicaTest, RejectsAFragmentOfAnotherModel) {
  auto replica = Make(TinyReplica(TinyDataset("foreign")));
  FragmentLayout layout = WholeModel(replica->manifest());
  std::vector<float> values(layout.elements);
  EXPECT_THAT(replica->WriteFragment(layout, std::span(values).first(10)).message(),
              HasSubstr("10 values given"));
  layout.slots[1].elements += 1;
  EXPECT_THAT(replica->WriteFragment(layout, values).message(), HasSubstr("tensor 1"));
}

TEST(TorchReplicaTest, SeekContinuesTheSequenceOfSamples) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("seek"));
  auto straight = Make(options);
  Train(*straight, 5);
  const uint64_t position = straight->samples_consumed();
  EXPECT_EQ(position, 5u * options.run.inner.batch);
  auto resumed = Make(options);
  const FragmentLayout layout = WholeModel(straight->manifest());
  ASSERT_TRUE(resumed->WriteFragment(layout, Parameters(*straight)).ok());
  ASSERT_TRUE(resumed->Seek(position).ok());
  // The loss of the next step is taken before any update, so it depends on parameters and samples only.
  EXPECT_EQ(Train(*straight, 1), Train(*resumed, 1));
}

TEST(TorchReplicaTest, PartitionsReadDifferentText) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("partitions"));
  options.partitions = 2;
  auto first = Make(options);
  options.partition = 1;
  auto second = Make(options);
  EXPECT_NE(Train(*first, 1), Train(*second, 1));
  ASSERT_TRUE(second->SetPartition(0, 2).ok());
  EXPECT_THAT(second->SetPartition(2, 2).message(), HasSubstr("partition 2"));
}

TEST(TorchReplicaTest, ANonFiniteStepIsNotTaken) {
  auto replica = Make(TinyReplica(TinyDataset("nan")));
  const FragmentLayout layout = WholeModel(replica->manifest());
  const std::vector<float> good = Parameters(*replica);
  std::vector<float> bad = good;
  bad[layout.slots[4].offset] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(replica->WriteFragment(layout, bad).ok());
  const auto step = replica->InnerStep(1e-3);
  EXPECT_EQ(step.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(step.status().message(), HasSubstr("not finite"));
  EXPECT_EQ(replica->samples_consumed(), 0u);
  EXPECT_EQ(replica->Evaluate(1).status().code(), absl::StatusCode::kOutOfRange);
  // Nothing of it stays: with good parameters again the run is the one that never failed.
  ASSERT_TRUE(replica->WriteFragment(layout, good).ok());
  EXPECT_EQ(Parameters(*replica), good);
  auto untouched = Make(TinyReplica(TinyDataset("nan")));
  EXPECT_EQ(Train(*replica, 3), Train(*untouched, 3));
}

TEST(TorchReplicaTest, AccumulationIsALargerBatch) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("accumulation"));
  auto large = Make(options);
  options.run.inner.batch = 2;
  options.run.inner.accumulation = 4;
  auto small = Make(options);
  const auto a = large->InnerStep(1e-3);
  const auto b = small->InnerStep(1e-3);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->tokens, b->tokens);
  EXPECT_NEAR(a->loss, b->loss, 1e-5);
  EXPECT_NEAR(a->gradient_norm, b->gradient_norm, 1e-4 * a->gradient_norm);
  EXPECT_EQ(large->samples_consumed(), small->samples_consumed());
}

TEST(TorchReplicaTest, Bf16StaysCloseToFloat32) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("bf16"));
  auto exact = Make(options);
  options.run.inner.precision = Precision::kBf16;
  auto rounded = Make(options);
  const std::vector<double> a = Train(*exact, 60, 3e-3);
  const std::vector<double> b = Train(*rounded, 60, 3e-3);
  EXPECT_NE(a, b);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.05 * a[i]) << "step " << i;
}

std::vector<TokenId> Continued(TorchReplica& replica, const std::vector<TokenId>& prompt,
                               const GenerateOptions& options) {
  std::vector<TokenId> drawn;
  const absl::Status status = replica.Generate(prompt, options, [&](TokenId token) {
    drawn.push_back(token);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return drawn;
}

TEST(TorchReplicaTest, GeneratesWhatItLearned) {
  auto replica = Make(TinyReplica(TinyDataset("generate")));
  Train(*replica, 300, 3e-3);
  const std::vector<TokenId> prompt = {'t', 'h', 'e', ' ', 'q', 'u', 'i', 'c', 'k', ' ', 'b', 'r', 'o'};
  const GenerateOptions likeliest = {.tokens = 20, .sampling = {.temperature = 0}};
  const std::vector<TokenId> tokens = Continued(*replica, prompt, likeliest);
  EXPECT_EQ(std::string(tokens.begin(), tokens.end()), "wn fox jumps over th");
  std::string begun;
  ASSERT_TRUE(replica
                  ->Generate(prompt, likeliest,
                             [&](TokenId token) {
                               begun.push_back(static_cast<char>(token));
                               return token != ' ';
                             })
                  .ok());
  EXPECT_EQ(begun, "wn ") << "it ends when it is told to";
  const GenerateOptions drawn = {.tokens = 30, .sampling = {.temperature = 1, .top_k = 20, .seed = 3}};
  EXPECT_EQ(Continued(*replica, {}, drawn), Continued(*replica, {}, drawn));
  const std::vector<TokenId> outside = {300};
  const auto nowhere = [](TokenId) { return true; };
  EXPECT_THAT(std::string(replica->Generate(outside, {}, nowhere).message()),
              HasSubstr("outside the model's vocabulary"));
}

/// The text of TinyDataset as that of a tokenizer with an end-of-text token: each line is a document.
std::string LinesDataset(const std::string& name) {
  const std::string folder = TinyDataset(name), out = folder + "-lines";
  EXPECT_TRUE(RemoveAll(out).ok());
  EXPECT_TRUE(CreateDirs(out).ok());
  const auto from = Dataset::Open(folder, {256, 16, "bytes"});
  DatasetWriter writer({.folder = out, .tokenizer = "lines", .vocabulary = 256, .end_of_text = '\n'});
  std::vector<TokenId> tokens(from->train_tokens());
  EXPECT_TRUE(from->ReadTrain(0, tokens).ok());
  EXPECT_TRUE(writer.AddTrain(tokens).ok());
  EXPECT_TRUE(writer.AddHeldOut(from->validation().Tokens()).ok());
  EXPECT_TRUE(writer.Finish().ok());
  return out;
}

TEST(TorchReplicaTest, DocumentsAreTrainedAndEvaluatedApart) {
  TorchReplicaOptions options = TinyReplica(LinesDataset("apart"));
  options.run.data.tokenizer = "lines";
  const auto together = Make(options);
  options.run.data.isolate_documents = true;
  const auto apart = Make(options), again = Make(options);
  const std::vector<double> losses = Train(*apart, 40);
  EXPECT_NE(losses[0], Train(*together, 1)[0]);
  EXPECT_LT(losses.back(), losses.front() - 0.5);
  EXPECT_EQ(Train(*again, 40), losses);
  const auto measured = apart->Evaluate(4), of_one_text = together->Evaluate(4);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(of_one_text->tokens, 4u * 8 * 16);
  EXPECT_LT(measured->tokens, of_one_text->tokens) << "the first token of a document is not predicted";
  EXPECT_GT(measured->tokens, of_one_text->tokens * 9 / 10);
}

TEST(TorchReplicaTest, IsolatedDocumentsNeedTheirEnd) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("no-end"));
  options.run.data.isolate_documents = true;
  EXPECT_THAT(CreateTorchReplica(options).status().message(),
              HasSubstr("the tokenizer 'bytes' has no such token; tokenize the text with another tokenizer"));
}

TEST(TorchReplicaTest, SaysWhatIsWrongWithItsOptions) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("options"));
  options.device = "tpu";
  EXPECT_THAT(CreateTorchReplica(options).status().message(), HasSubstr("use auto, cpu, cuda or cuda:N"));
  options = TinyReplica(options.dataset_folder);
  options.run.model.gpt().heads = 5;
  EXPECT_THAT(CreateTorchReplica(options).status().message(), HasSubstr("heads must divide width"));
  options = TinyReplica("/nowhere");
  EXPECT_THAT(CreateTorchReplica(options).status().message(), HasSubstr("/nowhere"));
  options = TinyReplica("");
  auto replica = Make(options);
  EXPECT_THAT(replica->InnerStep(1e-3).status().message(), HasSubstr("no dataset"));
}

}  // namespace
}  // namespace atl
