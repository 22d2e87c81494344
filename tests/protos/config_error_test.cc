#include <random>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "s.yaml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << config.status();
  return std::string(config.status().message());
}

TEST(ConfigErrorTest, PresetsNamesAndFieldsAreToldAtOnce) {
  const std::string error =
      ErrorOf(Sample("rounds: 20", "rounds: -1") + "offenders: lenient\nround: {quorun: 1}\n");
  EXPECT_THAT(error, HasSubstr("run.rounds: "));
  EXPECT_THAT(error, HasSubstr("offenders: 'lenient' is not a preset"));
  EXPECT_THAT(error, HasSubstr("unknown field 'quorun'"));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 2) << error;
  const std::string named =
      ErrorOf(Sample("tokenizer: bytes", "tokenizer: 'my own'") + "round: {quorun: 1}\n");
  EXPECT_THAT(named, HasSubstr("data.tokenizer: 'my own' is not a valid name"));
  EXPECT_THAT(named, HasSubstr("unknown field 'quorun'"));
}

TEST(ConfigErrorTest, RulesBetweenValidFieldsAreToldBesideInvalidFields) {
  const std::string rules =
      "round: {quorum: 1.5, minimum: 9}\nmerge: {method: median}\nevaluation: {tasks: helaswag}\n";
  const std::string error = ErrorOf(SampleAnd(rules + "limits: {max_workers: 2, joins: 1}\n"));
  EXPECT_THAT(error, HasSubstr("s.yaml:18: round.quorum: 1.5 is out of range"));
  EXPECT_THAT(error, HasSubstr("s.yaml:18: round.minimum: 9 is above run.workers, which is 4"));
  EXPECT_THAT(error,
              HasSubstr("s.yaml:20: evaluation.tasks: 'helaswag' is no task; did you mean 'hellaswag'?"));
  EXPECT_THAT(error, HasSubstr("s.yaml:21: limits: unknown field 'joins'"));
  EXPECT_THAT(error, HasSubstr("s.yaml:3: run.workers: 4 is above limits.max_workers, which is 2"));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 4) << error;
}

TEST(ConfigErrorTest, RulesThatDependOnAnInvalidFieldAreLeftOut) {
  const auto only = [](const std::string& yaml, const std::string& field, int lines = 1) {
    const std::string error = ErrorOf(yaml);
    EXPECT_THAT(error, HasSubstr(field));
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n') + 1, lines) << error;
  };
  only(Sample("workers: 4", "workers: -4") + "round: {minimum: 9}\n", "run.workers");
  only(SampleAnd("round: {mode: barier, minimum: 3}\n"), "round.mode");
  only(SampleAnd("limits: {max_wrkers: 2}\nround: {start_workers: 500}\n"), "limits");
  only(Sample("gpt:", "gtp:") + "sync: {fragments: 900}\n", "unknown field 'gtp'", 2);
}

TEST(ConfigErrorTest, UnknownField) {
  EXPECT_EQ(ErrorOf(SampleAnd("round:\n  quorun: 0.5\n")),
            "s.yaml:19: round: unknown field 'quorun'; did you mean 'quorum'? allowed: deadline_s, quorum, "
            "minimum, "
            "grace_s, lease_s, start_workers, mode, staleness_limit, grace");
  EXPECT_EQ(ErrorOf(Sample("rounds: 20", "rounds: 20\n  xyzzy: 1")),
            "s.yaml:5: run: unknown field 'xyzzy'; allowed: name, workers, rounds, seed");
  EXPECT_EQ(
      ErrorOf(SampleAnd("optimiser: {}\n")),
      "s.yaml:18: unknown field 'optimiser'; allowed: run, model, data, inner, outer, merge, round, codec, "
      "evaluation, checkpoint, limits, sync, offenders, privacy");
}

TEST(ConfigErrorTest, OutOfRange) {
  EXPECT_EQ(ErrorOf(SampleAnd("round: {quorum: 1.5}\n")),
            "s.yaml:18: round.quorum: 1.5 is out of range; allowed: a number above 0, at most 1");
  EXPECT_EQ(ErrorOf(SampleAnd("round: {quorum: 0}\n")),
            "s.yaml:18: round.quorum: 0 is out of range; allowed: a number above 0, at most 1");
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: 0")),
            "s.yaml:3: run.workers: 0 is out of range; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: -4")),
            "s.yaml:3: run.workers: -4 is out of range; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(
      ErrorOf(Sample("workers: 4", "workers: 99999999999999999999")),
      "s.yaml:3: run.workers: 99999999999999999999 is out of range; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(Sample("1e-3", "nan")),
            "s.yaml:16: inner.learning_rate: nan is out of range; allowed: a number above 0, at most 100");
  for (const char* const tiny : {"1e-320", "1e-39", "1e-400"}) {
    EXPECT_THAT(ErrorOf(Sample("1e-3", tiny)), HasSubstr("allowed: a number above 0, at most 100")) << tiny;
    EXPECT_THAT(ErrorOf(SampleAnd(absl::StrCat("round: {quorum: ", tiny, "}\n"))),
                HasSubstr("allowed: a number above 0, at most 1"))
        << tiny;
  }
  EXPECT_EQ(ErrorOf(Sample("1e-3", "1e-320")),
            "s.yaml:16: inner.learning_rate: 1e-320 is too small for a float32; allowed: a number above 0, "
            "at most 100");
  EXPECT_TRUE(ParseRunConfig(Sample("1e-3", "1e-30"), "s.yaml").ok());
  EXPECT_EQ(ErrorOf(SampleAnd("round: {grace_s: inf}\n")),
            "s.yaml:18: round.grace_s: inf is out of range; allowed: a number from 0 to 604800 s");
}

TEST(ConfigErrorTest, WrongType) {
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: four")),
            "s.yaml:3: run.workers: 'four' has the wrong type; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: 4.5")),
            "s.yaml:3: run.workers: '4.5' has the wrong type; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(
      ErrorOf(Sample("workers: 4", "workers: \"4\"")),
      "s.yaml:3: run.workers: '4' is quoted text, which is the wrong type; allowed: a whole number from 1 to "
      "10000");
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: [4]")),
            "s.yaml:3: run.workers: has the wrong type; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers:")),
            "s.yaml:3: run.workers: has no value; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(
      ErrorOf(Sample("1e-3", "fast")),
      "s.yaml:16: inner.learning_rate: 'fast' has the wrong type; allowed: a number above 0, at most 100");
  EXPECT_EQ(
      ErrorOf(Sample("1e-3", "0x10")),
      "s.yaml:16: inner.learning_rate: '0x10' has the wrong type; allowed: a number above 0, at most 100");
  EXPECT_EQ(ErrorOf(SampleAnd("codec: {error_feedback: yes}\n")),
            "s.yaml:18: codec.error_feedback: 'yes' has the wrong type; allowed: true or false");
  EXPECT_EQ(ErrorOf(SampleAnd("merge: tokens\n")),
            "s.yaml:18: merge: has the wrong type; allowed: a section of the fields weights, method, trim, "
            "clip_radius, clip_iterations, norm_guard, sparse_average");
  EXPECT_THAT(ErrorOf("- a\n- b\n"),
              HasSubstr("s.yaml:1: has the wrong type; allowed: a section of the fields run, "));
}

TEST(ConfigErrorTest, WhatIsNoYamlIsCalledSo) {
  EXPECT_THAT(ErrorOf("# A page\n\n`atollctl` is a program.\n"),
              HasSubstr("s.yaml:3: this is not valid YAML: unknown token"));
  EXPECT_EQ(ErrorOf("run: &x {}\n"), "s.yaml:1: anchors (&name) are not allowed");
}

TEST(ConfigErrorTest, UnknownChoice) {
  EXPECT_EQ(ErrorOf(SampleAnd("outer: {optimizer: nestrov}\n")),
            "s.yaml:18: outer.optimizer: 'nestrov' is not known; did you mean 'nesterov'? allowed: one of "
            "nesterov, "
            "sgd, adam, delayed_nesterov");
  EXPECT_EQ(ErrorOf(SampleAnd("codec: {push: unspecified}\n")),
            "s.yaml:18: codec.push: 'unspecified' is not known; allowed: one of fp32, fp16, bf16, int8, "
            "int4, e3m0, int8_quantile, topk64, topk128, topk64_bf16, topk128_bf16");
}

TEST(ConfigErrorTest, Missing) {
  EXPECT_EQ(ErrorOf(Sample("  workers: 4\n", "")),
            "s.yaml:1: run.workers: is missing; allowed: a whole number from 1 to 10000");
  EXPECT_EQ(
      ErrorOf(Sample("data:\n  tokenizer: bytes\n", "")),
      "s.yaml: data: is missing; write `data: {tokenizer: bytes}`, with the tokenizer that made the token "
      "files; a run with `model: external` needs no data section");
  EXPECT_EQ(ErrorOf(Sample("name: sample", "name: ''")), "s.yaml:2: run.name: must not be empty");
  EXPECT_EQ(ErrorOf(""), "s.yaml: the file is empty");
  EXPECT_EQ(ErrorOf("# only a comment\n"), "s.yaml: the file is empty");
  EXPECT_THAT(
      ErrorOf(
          "run: {}\nmodel: {}\ndata: {tokenizer: bytes}\ninner: {steps: 1, learning_rate: 1, batch: 1}\n"),
      HasSubstr("s.yaml:2: model: gives no kind; allowed: exactly one of gpt"));
}

TEST(ConfigErrorTest, Duplicates) {
  EXPECT_EQ(ErrorOf(Sample("workers: 4", "workers: 4\n  workers: 5")),
            "s.yaml:4: run.workers: is given twice; first on line 3");
  EXPECT_EQ(ErrorOf(SampleAnd("data: {tokenizer: bytes}\n")),
            "s.yaml:18: data: is given twice; first on line 12");
}

TEST(ConfigErrorTest, AllProblemsAtOnceInTheOrderOfTheLines) {
  EXPECT_EQ(
      ErrorOf("run:\n  name: a\n  workers: 0\n  round: 1\nmodel:\n  gpt: {layers: x}\n"),
      "s.yaml: data: is missing; write `data: {tokenizer: bytes}`, with the tokenizer that made the token "
      "files; a run with `model: external` needs no data section\n"
      "s.yaml: inner: is missing; allowed: a section of fields\n"
      "s.yaml:1: run.rounds: is missing; allowed: a whole number from 1 to 100000000\n"
      "s.yaml:3: run.workers: 0 is out of range; allowed: a whole number from 1 to 10000\n"
      "s.yaml:4: run: unknown field 'round'; did you mean 'rounds'? allowed: name, workers, rounds, seed\n"
      "s.yaml:6: model.gpt.layers: 'x' has the wrong type; allowed: a whole number from 1 to 1024\n"
      "s.yaml:6: model.gpt.heads: is missing; allowed: a whole number from 1 to 1024\n"
      "s.yaml:6: model.gpt.width: is missing; allowed: a whole number from 1 to 65536\n"
      "s.yaml:6: model.gpt.context: is missing; allowed: a whole number from 1 to 1048576 tokens\n"
      "s.yaml:6: model.gpt.vocabulary: is missing; allowed: a whole number from 2 to 1048576 tokens");
}

TEST(ConfigErrorTest, ManyProblemsAreCounted) {
  std::string more;
  for (int i = 0; i < 60; ++i) more += "unknown" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(ErrorOf(SampleAnd(more)), ::testing::EndsWith("\n... and 10 more"));
}

TEST(ConfigErrorTest, FieldsThatContradictEachOther) {
  EXPECT_EQ(ErrorOf(Sample("heads: 4", "heads: 5")),
            "s.yaml:8: model.gpt.heads: 5 does not divide model.gpt.width, which is 64");
  EXPECT_EQ(ErrorOf(Sample("bytes", "bytes\n  partitions: 3")),
            "s.yaml:14: data.partitions: 3 is below run.workers, which is 4: each worker needs one; 0 "
            "chooses enough");
  const std::string islands = Sample("bytes", "bytes\n  partitions: 2");
  EXPECT_TRUE(ParseRunConfig(islands + "round: {start_workers: 2}\n", "s.yaml").ok());
  EXPECT_EQ(
      ErrorOf(islands + "round: {start_workers: 3}\n"),
      "s.yaml:14: data.partitions: 2 is below round.start_workers, which is 3: each worker needs one; 0 "
      "chooses enough");
  EXPECT_EQ(ErrorOf(SampleAnd("limits: {max_workers: 3}\n")),
            "s.yaml:3: run.workers: 4 is above limits.max_workers, which is 3");
  EXPECT_EQ(ErrorOf(SampleAnd("round: {start_workers: 2000}\n")),
            "s.yaml:18: round.start_workers: 2000 is above limits.max_workers, which is 1000");
  EXPECT_EQ(ErrorOf(SampleAnd("round: {minimum: 5}\n")),
            "s.yaml:18: round.minimum: 5 is above run.workers, which is 4: no round would ever close");
  EXPECT_EQ(ErrorOf(Sample("batch: 12", "batch: 12\n  warmup_steps: 1001")),
            "s.yaml:18: inner.warmup_steps: 1001 is above the run's total of 1000 inner steps (run.rounds x "
            "inner.steps)");
  EXPECT_EQ(ErrorOf(SampleAnd("codec: {pull: int8}\n")),
            "s.yaml:18: codec.pull: 'int8' cannot carry published parameters; allowed: one of fp32, bf16");
  std::string endless = Sample("rounds: 20", "rounds: 100000000");
  endless.replace(endless.find("steps: 50"), 9, "steps: 1000000");
  EXPECT_EQ(ErrorOf(endless + "  accumulation: 65536\n"),
            "s.yaml:4: run.rounds: the run would take 1.00663296e+22 tokens, above the limit of 9e18; lower "
            "run.rounds, inner.steps or inner.batch");
  EXPECT_EQ(ErrorOf(Sample("name: sample", "name: a/b")),
            "s.yaml:2: run.name: 'a/b' is not a valid name; allowed: up to 63 letters, digits, '-', '_' and "
            "'.', the "
            "first a "
            "letter or a digit");
}

TEST(ConfigErrorTest, LocalDataNeedsNoPartitions) {
  EXPECT_TRUE(ParseRunConfig(Sample("bytes", "bytes\n  mode: local\n  partitions: 1"), "s.yaml").ok());
}

TEST(ConfigErrorTest, SyntaxAndWhatYamlAllowsBeyondNeed) {
  EXPECT_THAT(ErrorOf("run: {name: a\n"), HasSubstr("s.yaml:2: "));
  EXPECT_THAT(ErrorOf("run:\n\tname: a\n"), HasSubstr("YAML is indented with spaces"));
  EXPECT_EQ(ErrorOf("a: &x 1\nb: *x\n"), "s.yaml:1: anchors (&name) are not allowed");
  EXPECT_EQ(ErrorOf("a: !!int 1\n"), "s.yaml:1: tags (!name) are not allowed");
  EXPECT_EQ(ErrorOf("{[a]: b}\n"), "s.yaml:1: a field's name must be a word");
  EXPECT_EQ(ErrorOf("a: 1\n---\nb: 2\n"),
            "s.yaml:2: a second document begins here; a file may contain only one");
  EXPECT_EQ(ErrorOf(std::string(20, '[') + std::string(20, ']')), "s.yaml:1: nested deeper than 16 levels");
  EXPECT_EQ(ErrorOf(std::string((1 << 20) + 1, '#')),
            "s.yaml: 1048577 bytes exceed the limit of 1048576 bytes");
}

TEST(ConfigErrorTest, ForeignTextIsShownSafely) {
  const std::string message =
      ErrorOf(Sample("workers: 4", "workers: \"\\e[31m\\n" + std::string(500, 'x') + "\""));
  EXPECT_THAT(message, HasSubstr("\\x1b[31m\\n"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 250u);
}

// An older coordinator knows neither the field nor its default.
TEST(ConfigErrorTest, NumbersThatAnOlderReleaseDidNotKnowGetTheirDefaults) {
  const v1::RunConfig config = *ParseRunConfig(kSampleYaml, "s.yaml");
  v1::RunConfig older = config;
  older.mutable_limits()->clear_joins_per_s();
  older.mutable_sync()->clear_answer();
  const auto options = ToRunOptions(older);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->joins_per_s, ToRunOptions(config)->joins_per_s);
  EXPECT_EQ(options->sync.answer, AnswerUse::kBlend);
}

// A configuration may also come from a coordinator.
TEST(ConfigErrorTest, MessagesAreCheckedToo) {
  v1::RunConfig config = *ParseRunConfig(kSampleYaml, "s.yaml");
  config.mutable_round()->set_quorum(7);
  config.mutable_model()->mutable_gpt()->set_layers(0);
  config.mutable_codec()->set_push(static_cast<v1::Codec>(99));
  config.mutable_run()->clear_name();
  EXPECT_EQ(std::string(ToRunOptions(config).status().message()),
            "run.name: must not be empty\n"
            "model.gpt.layers: 0 is out of range; allowed: a whole number from 1 to 1024\n"
            "round.quorum: 7 is out of range; allowed: a number above 0, at most 1\n"
            "codec.push: value 99 is not known; allowed: one of fp32, fp16, bf16, int8, int4, e3m0, "
            "int8_quantile, topk64, topk128, topk64_bf16, topk128_bf16");
  EXPECT_EQ(std::string(ToRunOptions(v1::RunConfig()).status().message()),
            "run: is missing\nmodel: is missing\ndata: is missing\ninner: is missing");
  config = *ParseRunConfig(kSampleYaml, "s.yaml");
  config.mutable_model()->clear_gpt();
  EXPECT_EQ(std::string(ToRunOptions(config).status().message()), "model: has no kind; give exactly one");
  config = *ParseRunConfig(Sample("heads: 4", "heads: 2"), "s.yaml");
  config.mutable_model()->mutable_gpt()->set_heads(3);
  EXPECT_EQ(std::string(ToRunOptions(config).status().message()),
            "model.gpt.heads: 3 does not divide model.gpt.width, which is 64");
}

TEST(ConfigErrorTest, AnOlderCoordinatorLeavesSectionsOut) {
  v1::RunConfig config = *ParseRunConfig(kSampleYaml, "s.yaml");
  config.clear_codec();
  config.mutable_outer()->clear_optimizer();
  const auto options = ToRunOptions(config);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->push_codec, CodecKind::kFp32);
  EXPECT_TRUE(options->error_feedback);
  EXPECT_EQ(options->outer.optimizer, OuterOptimizerKind::kNesterov);
}

// Nothing that a file can hold takes the program down.
TEST(ConfigErrorTest, RandomMutationsNeverCrash) {
  std::mt19937_64 random(5);
  const std::string pieces[] = {":",
                                "\n",
                                "  ",
                                "-",
                                "{",
                                "}",
                                "[",
                                "]",
                                "&a",
                                "*a",
                                "!!",
                                "\"",
                                "'",
                                "|",
                                ">",
                                "%",
                                "#",
                                "? ",
                                "---",
                                "...",
                                "~",
                                "\xff",
                                std::string(1, '\0'),
                                "1e999",
                                "-0",
                                "\t",
                                "@",
                                ","};
  int rejected = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string yaml = SampleAnd("outer: {optimizer: sgd}\nround:\n  quorum: 0.5\n");
    for (uint64_t edits = 1 + random() % 6; edits > 0; --edits) {
      const size_t at = random() % (yaml.size() + 1);
      if (random() % 3 == 0) {
        yaml.erase(at, random() % 8);
      } else {
        yaml.insert(at, pieces[random() % std::size(pieces)]);
      }
    }
    const auto config = ParseRunConfig(yaml, "s.yaml");
    if (!config.ok()) {
      ++rejected;
      EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    } else {
      EXPECT_TRUE(ToRunOptions(*config).ok()) << yaml;
    }
  }
  EXPECT_GT(rejected, 1000);
}

TEST(ConfigErrorTest, RandomBytesNeverCrash) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(ParseRunConfig(bytes, "s.yaml").ok());
  }
}

}  // namespace
}  // namespace atl
