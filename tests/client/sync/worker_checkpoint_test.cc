#include "client/sync/worker_checkpoint.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "common/crc32c.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WorkerCheckpointTest : public ::testing::Test {
 protected:
  WorkerCheckpointTest()
      : folder_(JoinPath(
            ::testing::TempDir(),
            std::string("local_state_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(RemoveAll(folder_).ok());
  }

  std::unique_ptr<WorkerCheckpoint> Open(StateOwner owner = {"run-1", "w1", "model"}) {
    auto state = WorkerCheckpoint::Open(
        folder_, std::move(owner),
        Logger::Create({.format = LogFormat::kJson, .stream = &log_, .file = ""}).value());
    EXPECT_TRUE(state.ok()) << state.status();
    return *std::move(state);
  }

  static void Save(WorkerCheckpoint& state, uint64_t base) {
    RoundCheckpoint* const round = state.BeginRound();
    ASSERT_NE(round, nullptr);
    *round = {.epoch = Epoch(7),
              .base = Version(base),
              .committed_tokens = 100 * base,
              .optimizer_warmup_steps = 40,
              .optimizer_warmup_left = 3,
              .replica = {.kind = "adamw of 3 values",
                          .optimizer_steps = 4 * base,
                          .partition = 2,
                          .partitions = 5,
                          .samples_consumed = 12 * base,
                          .random = std::string("\0\1\2", 3),
                          .moments = {{1.5F, -2.0F, 0.25F}, {3.0F, 4.0F, static_cast<float>(base)}}}};
    state.SaveRound();
    state.Flush();
  }

  static PushHeader Offer(const std::vector<std::byte>& payload) {
    return {.key = {FragmentId(1), Version(9), 0},
            .codec = CodecKind::kInt8,
            .payload_bytes = payload.size(),
            .payload_crc32c = Crc32c(payload),
            .tokens = 2400,
            .steps = 50,
            .partition = 3,
            .samples_consumed = 600,
            .mean_loss = 1.25};
  }

  std::vector<std::string> Files() const { return ListDir(folder_).value(); }
  /// Changes one byte of a file, counted from its end.
  void Damage(const std::string& name, size_t from_end) const {
    const std::string path = JoinPath(folder_, name);
    std::string text = ReadFile(path).value();
    text[text.size() - from_end] = static_cast<char>(text[text.size() - from_end] ^ 1);
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }

  const std::string folder_;
  std::ostringstream log_;
};

TEST_F(WorkerCheckpointTest, AFirstLifeFindsNothingAndHasNothingToSayAboutIt) {
  EXPECT_TRUE(absl::IsNotFound(Open()->LoadRound().status()));
  EXPECT_EQ(log_.str(), "");
}

TEST_F(WorkerCheckpointTest, ARoundComesBackAsItWas) {
  Save(*Open(), 6);
  const auto round = Open()->LoadRound();
  ASSERT_TRUE(round.ok()) << round.status();
  EXPECT_EQ(round->epoch, Epoch(7));
  EXPECT_EQ(round->base, Version(6));
  EXPECT_EQ(round->committed_tokens, 600u);
  EXPECT_EQ(round->optimizer_warmup_steps, 40u);
  EXPECT_EQ(round->optimizer_warmup_left, 3u);
  EXPECT_EQ(round->replica.kind, "adamw of 3 values");
  EXPECT_EQ(round->replica.optimizer_steps, 24u);
  EXPECT_EQ(round->replica.partition, 2u);
  EXPECT_EQ(round->replica.partitions, 5u);
  EXPECT_EQ(round->replica.samples_consumed, 72u);
  EXPECT_EQ(round->replica.random, std::string("\0\1\2", 3));
  EXPECT_THAT(round->replica.moments,
              ElementsAre(ElementsAre(1.5F, -2.0F, 0.25F), ElementsAre(3.0F, 4.0F, 6.0F)));
}

TEST_F(WorkerCheckpointTest, AStateThatAReplicaDescribesItselfComesBack) {
  auto state = Open();
  Save(*state, 6);
  const std::string without = ReadFile(JoinPath(folder_, Files()[0])).value();
  const std::vector<std::byte> bytes = {std::byte{7}, std::byte{0}, std::byte{9}};
  RoundCheckpoint* const round = state->BeginRound();
  ASSERT_NE(round, nullptr);
  round->replica.opaque = bytes;
  state->SaveRound();
  EXPECT_EQ(state->LoadRound()->replica.opaque, bytes);
  // Without one the file is that of earlier releases.
  RoundCheckpoint* const next = state->BeginRound();
  next->replica.opaque.clear();
  state->SaveRound();
  state->Flush();
  EXPECT_EQ(ReadFile(JoinPath(folder_, Files().back())).value(), without);
}

TEST_F(WorkerCheckpointTest, TheNewestTwoAreKept) {
  auto state = Open();
  for (uint64_t base = 1; base <= 4; ++base) Save(*state, base);
  EXPECT_THAT(Files(), ElementsAre("round-000003", "round-000004"));
  state.reset();
  state = Open();
  Save(*state, 5);
  EXPECT_THAT(Files(), ElementsAre("round-000004", "round-000005"));
  EXPECT_EQ(state->LoadRound()->base, Version(5));
}

TEST_F(WorkerCheckpointTest, WhereTheNewestIsDamagedTheOneBeforeServes) {
  auto state = Open();
  Save(*state, 1);
  Save(*state, 2);
  Damage("round-000002", 40);
  EXPECT_EQ(state->LoadRound()->base, Version(1));
  EXPECT_THAT(log_.str(), HasSubstr("round-000002 is damaged: its crc32c differs"));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder_, "round-000001"), "ATOLL").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(state->LoadRound().status()));
  EXPECT_THAT(log_.str(), HasSubstr("round-000001 is damaged: it is too short"));
}

TEST_F(WorkerCheckpointTest, AFileCutShortAnywhereIsRejected) {
  Save(*Open(), 1);
  const std::string path = JoinPath(folder_, "round-000001");
  const std::string whole = ReadFile(path).value();
  for (size_t size = 0; size < whole.size(); size += 7) {
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, size)).ok());
    EXPECT_FALSE(Open()->LoadRound().ok()) << size;
  }
}

TEST_F(WorkerCheckpointTest, TheStateOfAnotherIsRejectedByName) {
  Save(*Open(), 1);
  const std::vector<std::byte> payload(5);
  ASSERT_TRUE(Open()->WritePush(Epoch(7), Offer(payload), payload, {}).ok());
  const auto other = Open({"run-2", "w1", "model"});
  EXPECT_TRUE(absl::IsFailedPrecondition(other->LoadRound().status()));
  EXPECT_THAT(log_.str(), HasSubstr("is of run run-1, this is run run-2"));
  EXPECT_EQ(other->other_run(), "run-1");
  EXPECT_TRUE(absl::IsFailedPrecondition(Open({"run-1", "w2", "model"})->LoadRound().status()));
  EXPECT_THAT(log_.str(), HasSubstr("is of worker 'w1', this is 'w2'"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open({"run-1", "w1", "wider"})->LoadRound().status()));
  EXPECT_THAT(log_.str(), HasSubstr("is of another model"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open({"run-2", "w1", "model"})->LoadPush(FragmentId(1)).status()));
}

TEST_F(WorkerCheckpointTest, APushComesBackWithItsVerdict) {
  auto state = Open();
  const std::vector<std::byte> payload = {std::byte{1}, std::byte{2}, std::byte{3}};
  const std::vector<float> residual = {0.5F, 0.0F};
  EXPECT_TRUE(absl::IsNotFound(state->LoadPush(FragmentId(1)).status()));
  ASSERT_TRUE(state->WritePush(Epoch(7), Offer(payload), payload, residual).ok());
  auto push = state->LoadPush(FragmentId(1));
  ASSERT_TRUE(push.ok()) << push.status();
  EXPECT_EQ(push->epoch, Epoch(7));
  EXPECT_EQ(push->header, Offer(payload));
  EXPECT_EQ(push->payload, payload);
  EXPECT_EQ(push->residual, residual);
  EXPECT_EQ(push->verdict, std::nullopt);
  for (const Verdict verdict : {Verdict::kCounted, Verdict::kLost, Verdict::kNotFinite}) {
    ASSERT_TRUE(state->SettlePush(Offer(payload).key, Offer(payload).payload_crc32c, verdict).ok());
    EXPECT_EQ(state->LoadPush(FragmentId(1))->verdict, verdict);
  }
  Damage("push-1", 1);  // half of the mark
  EXPECT_EQ(state->LoadPush(FragmentId(1))->verdict, std::nullopt) << "then the coordinator is asked";
  Damage("push-1", 20);
  EXPECT_TRUE(absl::IsDataLoss(state->LoadPush(FragmentId(1)).status()));
}

TEST_F(WorkerCheckpointTest, AResidualOfZeroTakesNoRoom) {
  auto state = Open();
  const std::vector<std::byte> payload(5);
  ASSERT_TRUE(state->WritePush(Epoch(7), Offer(payload), payload, std::vector<float>(100000)).ok());
  EXPECT_LT(*FileSize(JoinPath(folder_, "push-1")), 1000u);
  EXPECT_TRUE(state->LoadPush(FragmentId(1))->residual.empty());
}

TEST_F(WorkerCheckpointTest, APushThatCannotBeWrittenLeavesNoOlderOne) {
  auto state = Open();
  const std::vector<std::byte> payload(5);
  ASSERT_TRUE(state->WritePush(Epoch(7), Offer(payload), payload, {}).ok());
  // A folder where the temporary file should go: as good as a full disk, for root too.
  ASSERT_TRUE(CreateDirs(JoinPath(folder_, "push-1.tmp")).ok());
  EXPECT_FALSE(state->WritePush(Epoch(7), Offer(payload), payload, {}).ok());
  EXPECT_TRUE(absl::IsNotFound(state->LoadPush(FragmentId(1)).status()));
}

TEST_F(WorkerCheckpointTest, AVerdictOnAnotherPushMarksNothing) {
  auto state = Open();
  const std::vector<std::byte> payload(5);
  const PushHeader header = Offer(payload);
  ASSERT_TRUE(state->WritePush(Epoch(7), header, payload, {}).ok());
  PushKey newer = header.key;
  newer.base = Version(newer.base.value() + 1);
  EXPECT_TRUE(absl::IsNotFound(state->SettlePush(newer, header.payload_crc32c, Verdict::kLost)));
  EXPECT_TRUE(absl::IsNotFound(state->SettlePush(header.key, header.payload_crc32c + 1, Verdict::kLost)));
  EXPECT_EQ(state->LoadPush(FragmentId(1))->verdict, std::nullopt);
  // Another life knows what it loaded.
  state = Open();
  EXPECT_TRUE(absl::IsNotFound(state->SettlePush(header.key, header.payload_crc32c, Verdict::kLost)));
  ASSERT_TRUE(state->LoadPush(FragmentId(1)).ok());
  EXPECT_TRUE(state->SettlePush(header.key, header.payload_crc32c, Verdict::kLost).ok());
  EXPECT_EQ(state->LoadPush(FragmentId(1))->verdict, Verdict::kLost);
}

/// While it lives, permissions of files hold for this thread also when it is root's. Another user might not
/// reach the folder at all.
class WithoutOverride {
 public:
  WithoutOverride() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~((1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH));
    EXPECT_EQ(::syscall(SYS_capset, &header_, less), 0);
  }
  ~WithoutOverride() { EXPECT_EQ(::syscall(SYS_capset, &header_, before_), 0); }
  WithoutOverride(const WithoutOverride&) = delete;
  WithoutOverride& operator=(const WithoutOverride&) = delete;

 private:
  __user_cap_header_struct header_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct before_[2] = {};
};

TEST_F(WorkerCheckpointTest, AnOlderPushThatCannotBeRemovedIsVoid) {
  auto state = Open();
  const std::vector<std::byte> payload(5);
  const PushHeader header = Offer(payload);
  ASSERT_TRUE(state->WritePush(Epoch(7), header, payload, {}).ok());
  // In this folder nothing can be made or removed, but the file in it can be changed.
  const std::string path = JoinPath(folder_, "push-1");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0555), 0);
  auto as_other_users = std::make_unique<WithoutOverride>();
  PushHeader newer = header;
  newer.key.base = Version(header.key.base.value() + 1);
  const absl::Status written = state->WritePush(Epoch(7), newer, payload, {});
  const absl::Status settled = state->SettlePush(newer.key, newer.payload_crc32c, Verdict::kCounted);
  as_other_users.reset();
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(absl::IsNotFound(settled));
  const absl::Status loaded = state->LoadPush(FragmentId(1)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(loaded)) << loaded;
  EXPECT_THAT(std::string(loaded.message()), HasSubstr("is void"));
}

}  // namespace
}  // namespace atl
