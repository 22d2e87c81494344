// Documents of one row that do not see each other: the same loss and gradients as each document alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/model_shape.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

constexpr int64_t kContext = 16;
constexpr int64_t kEnd = 3;

struct Case {
  const char* name;
  ModelOptions options;
};

std::vector<Case> Cases() {
  LlamaOptions llama = {.layers = 2,
                        .heads = 4,
                        .kv_heads = 2,
                        .width = 32,
                        .intermediate = 48,
                        .context = kContext,
                        .vocabulary = 97};
  LlamaOptions qwen = llama;
  qwen.qk_norm = true;
  qwen.qkv_bias = true;
  const GptOptions gpt = {.layers = 2, .heads = 4, .width = 32, .context = kContext, .vocabulary = 97};
  return {{"gpt", ModelOptions(gpt)}, {"llama", ModelOptions(llama)}, {"qwen", ModelOptions(qwen)}};
}

class Built {
 public:
  explicit Built(const ModelOptions& options, Precision precision = Precision::kFp32,
                 Activations activations = Activations::kKept)
      : parameters_(FlatParameters::Create(ManifestOf(options).value(), torch::kCPU).value()),
        model_(MakeLanguageModel(options, precision, parameters_, activations)) {
    model_->Initialise(3);
    const torch::NoGradGuard no_grad;
    torch::Tensor values = parameters_.values();
    values.mul_(5);  // attention that is far from uniform
  }
  const LanguageModel& model() const { return *model_; }
  /// Of a loss, which it frees; adds nothing to those of another.
  torch::Tensor GradientsOf(const torch::Tensor& loss) {
    {
      const torch::NoGradGuard no_grad;
      torch::Tensor gradients = parameters_.gradients();
      gradients.zero_();
    }
    loss.backward();
    return parameters_.gradients().clone();
  }

 private:
  FlatParameters parameters_;
  std::unique_ptr<LanguageModel> model_;
};

torch::Tensor Row(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kInt64).unsqueeze(0);
}

/// Three documents in one row of kContext + 1 tokens: of 6 and 5 tokens with their ends, and the beginning of
/// a third one.
const std::vector<std::vector<int64_t>> kDocuments = {
    {10, 11, 12, 60, 14, kEnd}, {20, 21, 20, 23, kEnd}, {30, 31, 30, 33, 34, 35}};

struct Packed {
  torch::Tensor tokens, targets, documents, positions;
};

Packed Pack() {
  std::vector<int64_t> row, targets, documents, positions;
  for (size_t i = 0; i < kDocuments.size(); ++i) {
    for (size_t at = 0; at < kDocuments[i].size(); ++at) {
      row.push_back(kDocuments[i][at]);
      documents.push_back(static_cast<int64_t>(i));
      positions.push_back(static_cast<int64_t>(at));
    }
  }
  for (int64_t t = 0; t < kContext; ++t) targets.push_back(row[t] == kEnd ? -100 : row[t + 1]);
  row.resize(kContext);
  documents.resize(kContext);
  positions.resize(kContext);
  return {Row(row), Row(targets), Row(documents), Row(positions)};
}

struct Alone {
  double loss = 0;
  torch::Tensor gradients;
};

/// The mean over the targets of all documents, each read by itself.
Alone EachAlone(Built& built) {
  Alone sum;
  double targets = 0;
  for (const std::vector<int64_t>& document : kDocuments) {
    const torch::Tensor all = Row(document);
    const int64_t count = all.size(1) - 1;
    const torch::Tensor loss =
        built.model().Loss(all.narrow(1, 0, count), all.narrow(1, 1, count), ModelMode::kTraining);
    const torch::Tensor gradients = built.GradientsOf(loss) * static_cast<double>(count);
    sum.gradients = sum.gradients.defined() ? sum.gradients + gradients : gradients;
    sum.loss += loss.item<double>() * static_cast<double>(count);
    targets += static_cast<double>(count);
  }
  return {.loss = sum.loss / targets, .gradients = sum.gradients / targets};
}

double Difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

TEST(DocumentsTest, ARowOfThreeIsTheThreeAlone) {
  const Packed packed = Pack();
  const DocumentLayout layout(packed.documents, packed.positions);
  for (const Case& made : Cases()) {
    Built built(made.options);
    const Alone alone = EachAlone(built);
    const torch::Tensor loss =
        built.model().LossOfDocuments(packed.tokens, packed.targets, layout, ModelMode::kTraining);
    EXPECT_NEAR(loss.item<double>(), alone.loss, 1e-5 * alone.loss) << made.name;
    EXPECT_LT(Difference(built.GradientsOf(loss), alone.gradients), 1e-5) << made.name;
    // As one text the loss is another.
    const torch::Tensor counted = packed.targets.masked_fill(packed.targets.lt(0), 0);
    const torch::Tensor one = built.model().Loss(packed.tokens, counted, ModelMode::kEvaluation);
    EXPECT_GT(std::abs(one.item<double>() - alone.loss), 1e-2) << made.name;
  }
}

// With rows that end at different places, and blocks that are computed again.
TEST(DocumentsTest, EachRowHasItsOwnDocuments) {
  const Packed packed = Pack();
  const torch::Tensor plain_documents = torch::zeros({1, kContext}, torch::kInt64);
  const torch::Tensor plain_positions = torch::arange(kContext, torch::kInt64).unsqueeze(0);
  const torch::Tensor tokens = torch::cat({packed.tokens, packed.tokens.flip(1)});
  const torch::Tensor second = torch::randint(97, {1, kContext}, torch::kInt64);
  const DocumentLayout both(torch::cat({packed.documents, plain_documents}),
                            torch::cat({packed.positions, plain_positions}));
  const double counted = packed.targets.ge(0).sum().item<double>();
  for (const Case& made : Cases()) {
    for (const Activations activations : {Activations::kKept, Activations::kRecomputed}) {
      Built built(made.options, Precision::kFp32, activations);
      const torch::Tensor first = built.model().LossOfDocuments(
          packed.tokens, packed.targets, {packed.documents, packed.positions}, ModelMode::kTraining);
      const torch::Tensor other = built.model().Loss(packed.tokens.flip(1), second, ModelMode::kTraining);
      const torch::Tensor expected = (first * counted + other * kContext) / (counted + kContext);
      const torch::Tensor gradients = built.GradientsOf(expected);
      const torch::Tensor found = built.model().LossOfDocuments(tokens, torch::cat({packed.targets, second}),
                                                                both, ModelMode::kTraining);
      EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-5 * expected.item<double>());
      EXPECT_LT(Difference(built.GradientsOf(found), gradients), 1e-5) << made.name;
    }
  }
}

// As close to float32 as the documents alone are.
TEST(DocumentsTest, Bf16IsAsCloseAsEachAlone) {
  const Packed packed = Pack();
  const DocumentLayout layout(packed.documents, packed.positions);
  for (const Case& made : Cases()) {
    Built exact(made.options), rounded(made.options, Precision::kBf16);
    const Alone expected = EachAlone(exact), alone = EachAlone(rounded);
    const torch::Tensor loss =
        rounded.model().LossOfDocuments(packed.tokens, packed.targets, layout, ModelMode::kTraining);
    EXPECT_NEAR(loss.item<double>(), expected.loss, 2e-2 * expected.loss) << made.name;
    const double of_alone = Difference(alone.gradients, expected.gradients);
    EXPECT_GT(of_alone, 1e-3) << made.name;
    EXPECT_LT(Difference(rounded.GradientsOf(loss), expected.gradients), 1.5 * of_alone) << made.name;
  }
}

TEST(DocumentsTest, ABatchOfEndsOnlyHasNothingToLearn) {
  for (const Case& made : Cases()) {
    Built built(made.options);
    const torch::Tensor tokens = torch::full({1, kContext}, kEnd, torch::kInt64);
    const torch::Tensor ignored = torch::full({1, kContext}, -100, torch::kInt64);
    const DocumentLayout layout(torch::arange(kContext, torch::kInt64).unsqueeze(0),
                                torch::zeros({1, kContext}, torch::kInt64));
    const torch::Tensor loss = built.model().LossOfDocuments(tokens, ignored, layout, ModelMode::kTraining);
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_EQ(built.GradientsOf(loss).abs().max().item<double>(), 0);
  }
}

}  // namespace
}  // namespace atl
