// A model that only the workers know (`model: external`), from YAML to RunOptions.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/check.h"
#include "protos/config/run_config.h"
#include "protos/config/run_config_codec.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGpt[] =
    "model:\n  gpt:\n    layers: 2\n    heads: 4\n    width: 64\n    context: 32\n    vocabulary: 256\n";
constexpr char kGptAndData[] =
    "model:\n  gpt:\n    layers: 2\n    heads: 4\n    width: 64\n    context: 32\n    vocabulary: 256\n"
    "data:\n  tokenizer: bytes\n";

/// The sample with this instead of model and data.
std::string With(const std::string& model) { return Sample(kGptAndData, model); }

v1::RunConfig Read(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "s.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(v1::RunConfig());
}

TEST(ConfigExternalTest, AWordIsTheSectionWithItsDefaults) {
  const v1::RunConfig config = Read(With("model: external\n"));
  EXPECT_TRUE(config.model().has_external());
  EXPECT_FALSE(config.model().has_gpt());
  for (const char* const same :
       {"model: {external: {}}\n", "model:\n  external:\n",
        "model: {external: {context: 1, parameters: 0}}\ndata: {tokenizer: none}\n"}) {
    EXPECT_EQ(RunConfigHash(Read(With(same))), RunConfigHash(config)) << same;
  }
  EXPECT_EQ(RunConfigHash(Read(FormatRunConfigYaml(config))), RunConfigHash(config));
}

TEST(ConfigExternalTest, NothingIsKnownOfTheModel) {
  const auto options = ToRunOptions(Read(With("model: external\n")));
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_NE(options->model.external(), nullptr);
  EXPECT_FALSE(options->model.size_known());
  EXPECT_EQ(options->model.vocabulary(), 0U);
  EXPECT_EQ(options->model.context(), 1U);
  // 20 rounds of 50 steps, of 12 samples on each of 4 workers.
  EXPECT_EQ(options->total_tokens(), 20U * 50 * 12 * 4);
  const auto again = RunConfigCodec().Parse(Read(With("model: external\n")).SerializeAsString());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->model.external(), nullptr);
}

TEST(ConfigExternalTest, SamplesMayHaveTokensAndTheSizeMayBeKnown) {
  const auto options = ToRunOptions(Read(With("model: {external: {context: 32, parameters: 1000}}\n")));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->total_tokens(), 20U * 50 * 12 * 32 * 4);
  EXPECT_EQ(options->model.external()->parameters, 1000U);
  EXPECT_TRUE(options->model.size_known());
  EXPECT_THAT(ComplaintAbout(With("model: {external: {context: 0}}\n")),
              HasSubstr("model.external.context: 0 is out of range"));
  EXPECT_THAT(ComplaintAbout(With("model: {external: {parameters: 1099511627777}}\n")),
              HasSubstr("model.external.parameters: 1099511627777 is out of range"));
}

TEST(ConfigExternalTest, OnlyOurModelsIsolateDocuments) {
  EXPECT_THAT(ComplaintAbout(With("model: external\ndata: {isolate_documents: true}\n")),
              HasSubstr("data.isolate_documents: true: an external model decides in its own program"));
  EXPECT_THAT(ComplaintAbout(With("model: {torchscript: {file: m.pt, context: 64, vocabulary: 300}}\n"
                                  "data: {tokenizer: gpt2, isolate_documents: true}\n")),
              HasSubstr("data.isolate_documents: true: a model.torchscript gets tokens and targets only"));
  EXPECT_TRUE(Read(With(std::string(kGpt) + "data: {tokenizer: gpt2, isolate_documents: true}\n"))
                  .data()
                  .isolate_documents());
}

TEST(ConfigExternalTest, DataNeedsNoTokenizer) {
  EXPECT_EQ(Read(With("model: external\n")).data().tokenizer(), "none");
  const v1::RunConfig local = Read(With("model: external\ndata: {mode: local}\n"));
  EXPECT_EQ(local.data().tokenizer(), "none");
  EXPECT_EQ(local.data().mode(), v1::DATA_MODE_LOCAL);
  EXPECT_EQ(Read(With("model: external\ndata: {tokenizer: gpt2}\n")).data().tokenizer(), "gpt2");
  EXPECT_EQ(Read(With("model: external\ndata:\n")).data().tokenizer(), "none");
  EXPECT_THAT(ComplaintAbout(With("model: external\ndata: tokens\n")), HasSubstr("data: has the wrong type"));
  EXPECT_THAT(ComplaintAbout(With(kGpt)), HasSubstr("data: is missing")) << "a model of Atoll's needs one";
  EXPECT_THAT(ComplaintAbout(With(std::string(kGpt) + "data: {}\n")),
              HasSubstr("data.tokenizer: is missing"));
}

TEST(ConfigExternalTest, OneModelIsGiven) {
  EXPECT_THAT(
      ComplaintAbout(With("model: {external: {}, gpt: {layers: 1, heads: 1, width: 8, context: 8, "
                          "vocabulary: 256}}\n")),
      HasSubstr(
          "model: gives more than one kind; allowed: exactly one of gpt, llama, torchscript, external"));
  const std::string extern_model = ComplaintAbout(With("model: extern\n"));
  EXPECT_THAT(extern_model,
              HasSubstr("model: 'extern' is not a preset; did you mean 'external'? allowed: gpt2, "));
  EXPECT_EQ(extern_model.find('\n'), std::string::npos) << "nothing follows from it: " << extern_model;
  EXPECT_THAT(ComplaintAbout(With("model: gpt\n")), HasSubstr("model: 'gpt' is not a preset; "));
  EXPECT_THAT(ComplaintAbout(With("")),
              HasSubstr("model: is missing; write `model: external` for a model of "
                        "your own, a preset such as `model: gpt2`, or `model: {gpt: {layers"));
  EXPECT_THAT(
      ComplaintAbout(With("model: [external]\ndata: {tokenizer: bytes}\n")),
      HasSubstr(
          "model: has the wrong type; allowed: a section of the fields gpt, llama, torchscript, external"));
  EXPECT_THAT(ComplaintAbout(With("model: {external: {layers: 3}}\n")),
              HasSubstr("model.external: unknown field 'layers'; allowed: context, parameters"));
}

TEST(ConfigExternalTest, FragmentsAreCheckedWhenTheModelComes) {
  const v1::RunConfig config =
      Read(With("model: external\n") + "sync: {fragments: 40, pattern: strided, mode: overlapped}\n");
  EXPECT_EQ(config.sync().fragments(), 40U);
}

TEST(ConfigExternalTest, AMessageWithoutAFieldHasItsDefault) {
  v1::RunConfig config = Read(With("model: external\n"));
  config.mutable_model()->mutable_external()->clear_context();
  const auto options = ToRunOptions(config);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->model.context(), 1U);
}

TEST(ConfigExternalTest, FieldsThatOnlyOurWorkerReadsAreNamed) {
  const std::string inner = "inner:\n  steps: 50\n  learning_rate: 1e-3\n  batch: 12\n";
  const auto warnings = [](const std::string& model, const std::string& more) {
    const auto file =
        ReadRunConfig("run: {name: r, workers: 4, rounds: 20}\n" + model + "\n" + more, "run.yaml");
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? file->warnings : std::vector<std::string>{"no file"};
  };
  const std::string external = "model: external";
  EXPECT_THAT(warnings(external, inner), IsEmpty());
  // The learning rate of a worker that joins in mid-run depends on these two.
  EXPECT_THAT(warnings(external, inner + "  optimizer: sgd\n  beta2: 0.95\n"), IsEmpty());
  EXPECT_THAT(
      warnings(external, inner + "  clip_norm: 0\n  precision: bf16\n  weight_decay: 0.2\n"),
      ElementsAre(
          "run.yaml:9: inner.weight_decay, inner.clip_norm, inner.precision: no effect with an external "
          "model: set this in the program of the workers"));
  EXPECT_THAT(warnings("model: {gpt: {layers: 2, heads: 4, width: 64, context: 32, vocabulary: 256}}\n"
                       "data: {tokenizer: bytes}",
                       inner + "  clip_norm: 2\n"),
              IsEmpty());
}

}  // namespace
}  // namespace atl
