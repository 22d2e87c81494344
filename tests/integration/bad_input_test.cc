// What a user gets for a mistake: the right exit code, and a message that names the thing and the remedy.

#include <signal.h>

#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Program(const std::string& name) { return std::string(ATOLL_BIN_DIR) + "/" + name; }

struct BadConfig {
  const char* from;
  const char* to;
  std::vector<const char*> says;
};

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = Cluster::Create(TinyConfig({}));
    ASSERT_TRUE(created.ok()) << created.status();
    cluster_ = *std::move(created);
  }

  Finished Coordinator(const std::string& config, const std::string& data_dir,
                       const std::string& listen = "127.0.0.1:0") {
    return RunToEnd({Program("atoll-coordinator"), "--config", config, "--data-dir", data_dir, "--listen",
                     listen, "--admin-listen", "127.0.0.1:0", "--metrics-listen", ""},
                    Seconds(20));
  }

  Finished Worker(const std::string& name, const std::string& tokens, const std::string& state = "state-x") {
    return RunToEnd({Program("atoll-worker"), "--coordinator", cluster_->data_address(), "--name", name,
                     "--data", tokens, "--state-dir", cluster_->PathOf(state), "--threads", "1"},
                    Seconds(30));
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(BadInput, ConfigurationsAreRejectedBeforeAnythingStarts) {
  const BadConfig cases[] = {
      {"grace_s: 5", "graze_s: 5", {":7: round", "graze_s", "did you mean 'grace_s'"}},
      {"batch: 4", "batch: 0", {"inner.batch", "0", "1"}},
      {"learning_rate: 0.003", "learning_rate: fast", {"inner.learning_rate", "fast"}},
      {"data: {tokenizer: bytes, partitions: 2}\n", "", {"data"}},
      {"optimizer: nesterov", "optimizer: nesterof", {"outer.optimizer", "nesterof", "nesterov"}},
      {"heads: 2", "heads: 3", {"heads", "width"}},
  };
  for (const BadConfig& bad : cases) {
    const std::string path = cluster_->PathOf("bad.yaml");
    const std::string text = absl::StrReplaceAll(TinyConfig({}), {{bad.from, bad.to}});
    ASSERT_NE(text, TinyConfig({})) << bad.from;
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    const std::string data_dir = cluster_->PathOf("never");
    for (const Finished& run : {Coordinator(path, data_dir),
                                RunToEnd({Program("atollctl"), "config", "validate", path}, Seconds(20))}) {
      EXPECT_EQ(run.exit_code, 2) << run.output;
      EXPECT_THAT(run.output, HasSubstr("bad.yaml"));
      for (const char* says : bad.says) EXPECT_THAT(run.output, HasSubstr(says));
    }
    EXPECT_FALSE(FileExists(data_dir)) << "a refused configuration must not leave a data directory";
  }
}

TEST_F(BadInput, MissingConfigurationFileIsNamed) {
  const Finished run = Coordinator(cluster_->PathOf("nowhere.yaml"), cluster_->PathOf("never"));
  EXPECT_EQ(run.exit_code, 6) << run.output;
  EXPECT_THAT(run.output, HasSubstr("nowhere.yaml"));
}

TEST_F(BadInput, PortInUseIsNamed) {
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  const Finished run =
      Coordinator(cluster_->PathOf("run.yaml"), cluster_->PathOf("other"), cluster_->data_address());
  EXPECT_EQ(run.exit_code, 3) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr(cluster_->data_address()), HasSubstr("in use")));
}

TEST_F(BadInput, DataDirectoryBelongsToOneCoordinator) {
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  const Finished run = Coordinator(cluster_->PathOf("run.yaml"), cluster_->PathOf("coordinator"));
  EXPECT_EQ(run.exit_code, 4) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr(cluster_->PathOf("coordinator")),
                                HasSubstr(std::to_string(cluster_->coordinator().pid()))));
}

TEST_F(BadInput, TruncatedTokenFileIsNamedAndRejected) {
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  const auto files = ListDir(cluster_->PathOf("tokens"));
  ASSERT_TRUE(files.ok());
  std::string damaged;
  for (const std::string& file : *files) {
    if (file.find("train") == std::string::npos) continue;
    damaged = cluster_->PathOf("tokens/" + file);
    const auto bytes = ReadFile(damaged);
    ASSERT_TRUE(bytes.ok());
    ASSERT_TRUE(WriteFileAtomically(damaged, bytes->substr(0, bytes->size() / 2)).ok());
  }
  ASSERT_FALSE(damaged.empty());
  const Finished run = Worker("w0", cluster_->PathOf("tokens"));
  EXPECT_EQ(run.exit_code, 6) << run.output;
  EXPECT_THAT(run.output, HasSubstr(damaged));
}

TEST_F(BadInput, MissingTokensAreNamed) {
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  const Finished run = Worker("w0", cluster_->PathOf("no-tokens"));
  EXPECT_EQ(run.exit_code, 6) << run.output;
  EXPECT_THAT(run.output, HasSubstr("no-tokens"));
}

TEST_F(BadInput, TokensOfAnotherVocabularyAreRejected) {
  ASSERT_TRUE(
      WriteFileAtomically(cluster_->PathOf("run.yaml"),
                          absl::StrReplaceAll(TinyConfig({}), {{"vocabulary: 256", "vocabulary: 100"}}))
          .ok());
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  const Finished run = Worker("w0", cluster_->PathOf("tokens"));
  EXPECT_EQ(run.exit_code, 6) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("vocabulary"), HasSubstr("256"), HasSubstr("100")));
}

TEST_F(BadInput, ASecondWorkerUnderATakenNameIsRejected) {
  ASSERT_TRUE(cluster_->StartCoordinator().ok());
  ASSERT_TRUE(cluster_->StartWorker("w0").ok());
  ASSERT_TRUE(cluster_
                  ->WaitUntil("w0", Seconds(30),
                              [](const v1::GetStatusReply& status) { return status.live_trainers() == 1; })
                  .ok());
  const Finished run = Worker("w0", cluster_->PathOf("tokens"), "another-state");
  EXPECT_EQ(run.exit_code, 5) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("w0"), HasSubstr("choose another name")));
  EXPECT_TRUE(cluster_->worker("w0").running());
}

TEST_F(BadInput, UnknownOptionsAndMissingCoordinatorsAreExplained) {
  for (const char* program : {"atoll-coordinator", "atoll-worker", "atollctl", "atoll-data"}) {
    const Finished wrong = RunToEnd({Program(program), "--no-such-option"}, Seconds(20));
    EXPECT_EQ(wrong.exit_code, 2) << program << ": " << wrong.output;
    const Finished help = RunToEnd({Program(program), "--help"}, Seconds(20));
    EXPECT_EQ(help.exit_code, 0) << program;
    EXPECT_GT(help.output.size(), 300u) << program;
    const Finished version = RunToEnd({Program(program), "--version"}, Seconds(20));
    EXPECT_EQ(version.exit_code, 0) << program;
    EXPECT_THAT(version.output, HasSubstr("0.2.0"));
  }
  const Finished away =
      RunToEnd({Program("atollctl"), "--admin", "127.0.0.1:1", "--timeout", "0.5", "status"}, Seconds(20));
  EXPECT_EQ(away.exit_code, 3) << away.output;
  EXPECT_THAT(away.output, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace atl
