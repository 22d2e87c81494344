#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/contract/run_store_contract.h"

namespace atl {
namespace {

using testing::HasSubstr;

TEST_P(RunStoreContract, AnAcceptedContributionIsKept) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("worker-1", 0);
  ASSERT_TRUE(Push(key).ok());
  for (int life = 0; life < 2; ++life) {
    const auto payload = store().OpenPayload(key);
    ASSERT_TRUE(payload.ok()) << payload.status();
    EXPECT_EQ(BytesOf(**payload), PayloadFor(key));
    EXPECT_EQ(store().StartUpload(key, 100).status().code(), absl::StatusCode::kAlreadyExists);
    Reopen();
    EXPECT_EQ(recovery().fragments[0].accepted, std::vector<Contribution>{ContributionFor(key)});
  }
}

TEST_P(RunStoreContract, ABrokenUploadResumesWhereItStopped) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  const std::string payload = PayloadFor(key);
  {
    auto upload = store().StartUpload(key, payload.size());
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE(AppendString(**upload, payload.substr(0, 700)).ok());
  }
  EXPECT_EQ(store().OpenPayload(key).status().code(), absl::StatusCode::kNotFound);
  Reopen();
  EXPECT_TRUE(recovery().fragments[0].accepted.empty());
  auto upload = store().StartUpload(key, payload.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_EQ((*upload)->received_bytes(), 700u);
  EXPECT_EQ(BytesOf(**(*upload)->View()), payload.substr(0, 700));
  EXPECT_EQ((*upload)->Accept(ContributionFor(key)).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(AppendString(**upload, payload.substr(700)).ok());
  EXPECT_EQ(BytesOf(**(*upload)->View()), payload);
  ASSERT_TRUE((*upload)->Accept(ContributionFor(key)).ok());
  EXPECT_EQ((*upload)->Accept(ContributionFor(key)).code(), absl::StatusCode::kFailedPrecondition);
  upload->reset();
  EXPECT_EQ(BytesOf(**store().OpenPayload(key)), payload);
}

TEST_P(RunStoreContract, ADiscardedUploadStartsAtZero) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  const std::string payload = PayloadFor(key);
  {
    auto upload = store().StartUpload(key, payload.size());
    ASSERT_TRUE(AppendString(**upload, std::string(100, 'x')).ok());
    const auto view = (*upload)->View();
    (*upload)->Discard();
    EXPECT_EQ((*upload)->received_bytes(), 0u);
    EXPECT_EQ(BytesOf(**view), std::string(100, 'x'));  // what was mapped stays readable
    // The same upload may go on with better bytes.
    ASSERT_TRUE(AppendString(**upload, payload.substr(0, 10)).ok());
    (*upload)->Discard();
  }
  auto upload = store().StartUpload(key, payload.size());
  ASSERT_TRUE(upload.ok());
  EXPECT_EQ((*upload)->received_bytes(), 0u);
  ASSERT_TRUE(AppendString(**upload, payload).ok());
  EXPECT_TRUE((*upload)->Accept(ContributionFor(key)).ok());
}

TEST_P(RunStoreContract, LeftoversOfAnotherSizeAreNotResumed) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  ASSERT_TRUE(AppendString(**store().StartUpload(key, 1000), std::string(900, 'x')).ok());
  EXPECT_EQ((*store().StartUpload(key, 500))->received_bytes(), 0u);
}

TEST_P(RunStoreContract, StagedBytesAreToldWithoutATrace) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  const std::string payload = PayloadFor(key);
  EXPECT_EQ(store().StagedBytes(key), 0u);
  {
    auto upload = store().StartUpload(key, payload.size());
    ASSERT_TRUE(upload.ok());
    ASSERT_TRUE(AppendString(**upload, payload.substr(0, 10)).ok());
    EXPECT_EQ(store().StagedBytes(key), 0u) << "nobody else can resume it now";
  }
  EXPECT_EQ(store().StagedBytes(key), 10u);
  auto upload = store().StartUpload(key, payload.size());
  ASSERT_TRUE(upload.ok()) << "the question claimed nothing";
  ASSERT_TRUE(AppendString(**upload, payload.substr(10)).ok());
  ASSERT_TRUE((*upload)->Accept(ContributionFor(key)).ok());
  upload->reset();
  EXPECT_EQ(store().StagedBytes(key), 0u) << "it is accepted";
}

TEST_P(RunStoreContract, OneUploadOfAKeyAtATime) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  auto first = store().StartUpload(key, 10);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(store().StartUpload(key, 10).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(store().StartUpload(KeyOf("b", 0), 10).ok());
  first->reset();
  EXPECT_TRUE(store().StartUpload(key, 10).ok());
}

TEST_P(RunStoreContract, UploadsThatCannotBeAreRejected) {
  CreateAndSeed();
  const auto code = [this](const ContributionKey& key, uint64_t bytes) {
    return store().StartUpload(key, bytes).status().code();
  };
  ContributionKey other_epoch = KeyOf("a", 0);
  other_epoch.epoch = Epoch(1);
  EXPECT_EQ(code(other_epoch, 10), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(KeyOf("a", 1), 10), absl::StatusCode::kFailedPrecondition);  // above the head
  EXPECT_EQ(code(KeyOf("a", 0, 1), 10), absl::StatusCode::kNotFound);         // no such fragment
  EXPECT_EQ(code(KeyOf("../a", 0), 10), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(KeyOf("a", 0), 0), absl::StatusCode::kInvalidArgument);
}

TEST_P(RunStoreContract, AnUploadHoldsToWhatItAnnounced) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  const std::string payload = PayloadFor(key);
  auto upload = store().StartUpload(key, payload.size());
  ASSERT_TRUE(AppendString(**upload, payload.substr(1)).ok());
  EXPECT_THAT(AppendString(**upload, "xy").ToString(), HasSubstr("exceed its size"));
  ASSERT_TRUE(AppendString(**upload, "x").ok());
  Contribution wrong = ContributionFor(key);
  wrong.payload_bytes -= 1;
  EXPECT_EQ((*upload)->Accept(wrong).code(), absl::StatusCode::kInvalidArgument);
  wrong = ContributionFor(KeyOf("b", 0));
  EXPECT_EQ((*upload)->Accept(wrong).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*upload)->Accept(ContributionFor(key)).ok());
}

TEST_P(RunStoreContract, AnUploadLeftBehindByACommitIsForgotten) {
  CreateAndSeed();
  const ContributionKey idle = KeyOf("idle", 0);
  const ContributionKey busy = KeyOf("busy", 0);
  ASSERT_TRUE(AppendString(**store().StartUpload(idle, 100), "1234").ok());
  auto upload = store().StartUpload(busy, 100);
  ASSERT_TRUE(AppendString(**upload, "1234").ok());
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(AppendString(**upload, "5678").ok());  // it lives until it ends
  upload->reset();
  // Both may start again, but from nothing.
  EXPECT_EQ((*store().StartUpload(idle, 100))->received_bytes(), 0u);
  EXPECT_EQ((*store().StartUpload(busy, 100))->received_bytes(), 0u);
}

TEST_P(RunStoreContract, AnUploadOnALateBaseIsResumedForAsLongAsItIsToBeKept) {
  CreateAndSeed();
  store().KeepLate(2);
  const ContributionKey late = KeyOf("late", 0);
  ASSERT_TRUE(AppendString(**store().StartUpload(late, 100), "1234").ok());
  auto upload = store().StartUpload(KeyOf("busy", 0), 100);
  ASSERT_TRUE(AppendString(**upload, "1234").ok());
  PushAndCommit(1, {"a"});
  PushAndCommit(2, {"a"});
  upload->reset();
  EXPECT_EQ((*store().StartUpload(late, 100))->received_bytes(), 4u);
  EXPECT_EQ((*store().StartUpload(KeyOf("busy", 0), 100))->received_bytes(), 4u);
  Reopen();
  store().KeepLate(2);
  EXPECT_EQ((*store().StartUpload(late, 100))->received_bytes(), 4u);
  store().KeepLate(1);
  EXPECT_EQ((*store().StartUpload(late, 100))->received_bytes(), 0u);
}

TEST_P(RunStoreContract, ManyThreadsUploadAtOnce) {
  CreateAndSeed();
  constexpr int kThreads = 8;
  std::vector<absl::Status> results(kThreads);
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, &results] {
        for (int i = 0; i < 5 && results[t].ok(); ++i) {
          ContributionKey key = KeyOf("worker-" + std::to_string(t), 0);
          key.sequence = static_cast<uint32_t>(i);
          results[t] = Push(key);
          if (results[t].ok())
            results[t] =
                store().AppendEvent({.sequence = static_cast<uint64_t>(t * 5 + i + 1), .bytes = "pushed"});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const absl::Status& result : results) EXPECT_TRUE(result.ok()) << result;
  Reopen();
  const auto& accepted = recovery().fragments[0].accepted;
  ASSERT_EQ(accepted.size(), 40u);
  EXPECT_TRUE(std::is_sorted(accepted.begin(), accepted.end(),
                             [](const Contribution& a, const Contribution& b) { return a.key < b.key; }));
  for (const Contribution& c : accepted) EXPECT_EQ(BytesOf(**store().OpenPayload(c.key)), PayloadFor(c.key));
}

TEST_P(RunStoreContract, ThreadsThatRaceForOneKeyEndWithOneContribution) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("a", 0);
  std::atomic<int> accepted = 0;
  std::atomic<int> strange = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (true) {
        const absl::Status pushed = Push(key);
        if (pushed.ok()) ++accepted;
        if (pushed.ok() || absl::IsAlreadyExists(pushed)) return;
        if (!absl::IsAborted(pushed)) ++strange;
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted.load(), 1);
  EXPECT_EQ(strange.load(), 0);
  // Must not sweep the accepted file away as a partial one.
  ASSERT_TRUE(store().CommitRound(RecordFor(1, {"a"}), {}).ok());
  EXPECT_EQ(BytesOf(**store().OpenPayload(key)), PayloadFor(key));
}

}  // namespace
}  // namespace atl
