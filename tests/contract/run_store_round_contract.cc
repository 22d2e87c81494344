#include <gmock/gmock.h>

#include <algorithm>

#include "tests/contract/run_store_contract.h"

namespace atl {
namespace {

using testing::HasSubstr;

TEST_P(RunStoreContract, ACommitIsFoundAgainForReplay) {
  CreateAndSeed();
  PushAndCommit(1, {"a", "b"});
  PushAndCommit(2, {"a"});
  ASSERT_TRUE(Push(KeyOf("b", 2)).ok());
  Reopen();
  const FragmentRecovery& fragment = recovery().fragments[0];
  EXPECT_EQ(fragment.stored, Version(0));
  EXPECT_EQ(fragment.head, Version(2));
  EXPECT_EQ(fragment.to_replay, (std::vector<RoundRecord>{RecordFor(1, {"a", "b"}), RecordFor(2, {"a"})}));
  EXPECT_EQ(fragment.accepted, std::vector<Contribution>{ContributionFor(KeyOf("b", 2))});
  EXPECT_EQ(recovery().rounds.size(), 2u);
  for (const RoundRecord& round : fragment.to_replay) {
    for (const Contribution& c : round.contributions) {
      EXPECT_EQ(BytesOf(**store().OpenPayload(c.key)), PayloadFor(c.key));
    }
  }
}

TEST_P(RunStoreContract, PartitionsAdvanceWithTheCommit) {
  CreateAndSeed();
  ASSERT_TRUE(Push(KeyOf("a", 0)).ok());
  const std::vector<PartitionEntry> positions{{.partition = 0, .samples_consumed = 10},
                                              {.partition = 300, .samples_consumed = 20}};
  ASSERT_TRUE(store().CommitRound(RecordFor(1, {"a"}), positions).ok());
  ASSERT_TRUE(Push(KeyOf("a", 1)).ok());
  ASSERT_TRUE(store().CommitRound(RecordFor(2, {"a"}), {{.partition = 0, .samples_consumed = 11}}).ok());
  Reopen();
  EXPECT_EQ(recovery().partitions, (std::vector<PartitionEntry>{{.partition = 0, .samples_consumed = 11},
                                                                {.partition = 300, .samples_consumed = 20}}));
}

TEST_P(RunStoreContract, AHeadRemembersTheConfigurationOfTheRoundThatItOpens) {
  CreateAndSeed(2);
  const auto put = [this](uint64_t version) {
    return store().PutConfig({.version = version, .recorded_unix_ns = 0, .author = "ann", .bytes = "c"});
  };
  ASSERT_TRUE(put(2).ok());
  Reopen();
  EXPECT_EQ(recovery().fragments[0].config_version, 1u) << "the round was open when it was set";
  ASSERT_TRUE(Push(KeyOf("a", 0)).ok());
  ASSERT_TRUE(store().CommitRound(RecordFor(1, {"a"}), {}).ok());
  ASSERT_TRUE(put(3).ok());
  Reopen();
  EXPECT_EQ(recovery().fragments[0].config_version, 2u);
  EXPECT_EQ(recovery().fragments[1].config_version, 1u);
  EXPECT_EQ(recovery().configs.size(), 3u);
}

TEST_P(RunStoreContract, ACommitOutOfOrderIsRejected) {
  CreateAndSeed();
  ASSERT_TRUE(Push(KeyOf("a", 0)).ok());
  const auto commit = [this](const RoundRecord& record) { return store().CommitRound(record, {}); };
  RoundRecord record = RecordFor(1, {"a"});
  record.version = Version(2);
  EXPECT_EQ(commit(record).code(), absl::StatusCode::kFailedPrecondition);
  record = RecordFor(1, {"a"});
  record.epoch = Epoch(1);
  EXPECT_THAT(commit(record).ToString(), HasSubstr("epoch"));
  record = RecordFor(1, {"a"});
  record.config_version = 2;
  EXPECT_THAT(commit(record).ToString(), HasSubstr("configuration 2"));
  EXPECT_THAT(commit(RecordFor(1, {"a", "b"})).ToString(), HasSubstr("worker b"));  // not accepted
  record = RecordFor(1, {"a"});
  record.contributions[0].norm = 2;  // not as it was accepted
  EXPECT_EQ(commit(record).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(commit(RecordFor(1, {"a", "a"})).ToString(), HasSubstr("twice"));
  EXPECT_EQ(commit(RecordFor(1, {})).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(commit(RecordFor(1, {"a"})).ok());
  EXPECT_EQ(commit(RecordFor(1, {"a"})).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(RunStoreContract, AContributionCountsOnce) {
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  RoundRecord again = RecordFor(2, {"b"});
  ASSERT_TRUE(Push(KeyOf("b", 1)).ok());
  again.contributions.insert(again.contributions.begin(), ContributionFor(KeyOf("a", 0)));
  again.weights = {0.5f, 0.5f};
  EXPECT_THAT(store().CommitRound(again, {}).ToString(), HasSubstr("already counted in version 1"));
  Reopen();
  EXPECT_THAT(store().CommitRound(again, {}).ToString(), HasSubstr("already counted in version 1"));
}

TEST_P(RunStoreContract, ALateContributionMayBeFoldedIntoALaterRound) {
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Push(KeyOf("late", 0)).ok());
  ASSERT_TRUE(Push(KeyOf("a", 1)).ok());
  RoundRecord record = RecordFor(2, {"a"});
  record.contributions.push_back(ContributionFor(KeyOf("late", 0)));
  record.weights.push_back(0.1f);
  ASSERT_TRUE(store().CommitRound(record, {}).ok());
  // Replaying version 2 from version 1 needs it, although its base is older than version 1.
  ASSERT_TRUE(Store(1, 1).ok());
  Reopen();
  EXPECT_EQ(recovery().fragments[0].to_replay, std::vector<RoundRecord>{record});
  EXPECT_TRUE(store().OpenPayload(KeyOf("late", 0)).ok());
  ASSERT_TRUE(Store(2, 1).ok());
  EXPECT_EQ(store().OpenPayload(KeyOf("late", 0)).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RunStoreContract, WhatNoRoundHasTakenIsKeptHoweverOldItsBaseIs) {
  CreateAndSeed();
  for (uint64_t version = 1; version <= 4; ++version) {
    PushAndCommit(version, {"a"});
    ASSERT_TRUE(Store(version, 1).ok());
  }
  // Version 1 and all that was before it are gone; a contribution on it needs none of that.
  ASSERT_TRUE(Push(KeyOf("late", 1)).ok());
  ASSERT_TRUE(Push(KeyOf("later", 3)).ok());
  ASSERT_TRUE(Store(4, 1).ok());  // repeats the dropping
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(BytesOf(**store().OpenPayload(KeyOf("late", 1))), PayloadFor(KeyOf("late", 1)));
    Reopen();
    EXPECT_EQ(
        recovery().fragments[0].accepted,
        (std::vector<Contribution>{ContributionFor(KeyOf("late", 1)), ContributionFor(KeyOf("later", 3))}));
  }
}

TEST_P(RunStoreContract, ARoundLetsGoOfWhatItLeavesOut) {
  CreateAndSeed();
  ASSERT_TRUE(Push(KeyOf("huge", 0)).ok());
  PushAndCommit(1, {"a"});
  EXPECT_EQ(store().OpenPayload(KeyOf("huge", 0)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().StartUpload(KeyOf("huge", 0), 100).status().code(),
            absl::StatusCode::kFailedPrecondition);
  RoundRecord record = RecordFor(2, {});
  record.contributions.push_back(ContributionFor(KeyOf("huge", 0)));
  record.weights.push_back(1);
  EXPECT_EQ(store().CommitRound(record, {}).code(), absl::StatusCode::kFailedPrecondition);
  Reopen();
  EXPECT_TRUE(recovery().fragments[0].accepted.empty());
  EXPECT_EQ(store().CommitRound(record, {}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(RunStoreContract, StoredVersionsReadBack) {
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Store(1, 2).ok());
  for (int life = 0; life < 2; ++life) {
    for (uint64_t version = 0; version <= 1; ++version) {
      const auto read = store().ReadVersion(layout(), Version(version));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->parameters, TensorsAt(0, version).parameters);
      EXPECT_EQ(read->state, TensorsAt(0, version).state);
    }
    Reopen();
    EXPECT_EQ(recovery().fragments[0].stored, Version(1));
    EXPECT_TRUE(recovery().fragments[0].to_replay.empty());
  }
  EXPECT_THAT(store().ReadVersion(layout(), Version(2)).status().ToString(),
              HasSubstr("stored versions: 0, 1"));
}

TEST_P(RunStoreContract, StoringIsRejectedAboveTheHeadAndBelowTheStored) {
  CreateAndSeed();
  EXPECT_EQ(Store(1, 1).code(), absl::StatusCode::kFailedPrecondition);
  PushAndCommit(1, {"a"});
  PushAndCommit(2, {"a"});
  ASSERT_TRUE(Store(2, 2).ok());  // a version may be passed over
  EXPECT_EQ(Store(1, 2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Store(2, 0).code(), absl::StatusCode::kInvalidArgument);
  const FragmentTensors wrong{.parameters = {1, 2, 3}, .state = {{1, 2, 3}}};
  EXPECT_EQ(store().StoreVersion(layout(), Version(2), ViewOf(wrong), 2).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(RunStoreContract, StoringAgainOnlyRepeatsTheRetention) {
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Store(1, 2).ok());
  const FragmentTensors other = TensorsAt(0, 5);
  ASSERT_TRUE(store().StoreVersion(layout(), Version(1), ViewOf(other), 1).ok());
  EXPECT_EQ(store().ReadVersion(layout(), Version(1))->parameters, TensorsAt(0, 1).parameters);
  EXPECT_EQ(store().ReadVersion(layout(), Version(0)).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RunStoreContract, OldVersionsAndTheirContributionsGo) {
  CreateAndSeed();
  for (uint64_t version = 1; version <= 5; ++version) {
    ASSERT_TRUE(Push(KeyOf("idle", version - 1)).ok());  // accepted, but left out of its round
    PushAndCommit(version, {"a", "b"});
    ASSERT_TRUE(Store(version, 2).ok());
  }
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(store().ReadVersion(layout(), Version(3)).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store().ReadVersion(layout(), Version(4))->parameters, TensorsAt(0, 4).parameters);
    EXPECT_EQ(store().ReadVersion(layout(), Version(5))->parameters, TensorsAt(0, 5).parameters);
    // Round 5 can be recomputed from version 4; nothing needs round 4's.
    EXPECT_TRUE(store().OpenPayload(KeyOf("a", 4)).ok());
    EXPECT_EQ(store().OpenPayload(KeyOf("a", 3)).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store().OpenPayload(KeyOf("idle", 3)).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store().OpenPayload(KeyOf("idle", 4)).status().code(), absl::StatusCode::kNotFound);
    Reopen();
    EXPECT_EQ(recovery().rounds.size(), 5u);  // the history stays
    EXPECT_EQ(recovery().fragments[0].accepted.size(), 0u);
  }
}

TEST_P(RunStoreContract, FragmentsGoTheirOwnWays) {
  CreateAndSeed(2);
  PushAndCommit(1, {"a"}, 1);
  PushAndCommit(2, {"a"}, 1);
  ASSERT_TRUE(Store(2, 1, 1).ok());
  PushAndCommit(1, {"b"}, 0);
  Reopen();
  EXPECT_EQ(recovery().fragments[0].head, Version(1));
  EXPECT_EQ(recovery().fragments[0].stored, Version(0));
  EXPECT_EQ(recovery().fragments[1].head, Version(2));
  EXPECT_EQ(recovery().fragments[1].stored, Version(2));
  EXPECT_EQ(store().ReadVersion(layout(0), Version(0))->parameters, TensorsAt(0, 0).parameters);
  EXPECT_EQ(store().ReadVersion(layout(1), Version(2))->parameters, TensorsAt(1, 2).parameters);
  EXPECT_TRUE(store().OpenPayload(KeyOf("b", 0, 0)).ok());
  EXPECT_EQ(store().OpenPayload(KeyOf("a", 1, 1)).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RunStoreContract, StoringMayLagBehindCommitting) {
  CreateAndSeed();
  for (uint64_t version = 1; version <= 4; ++version) PushAndCommit(version, {"a"});
  ASSERT_TRUE(Store(2, 1).ok());
  Reopen();
  EXPECT_EQ(recovery().fragments[0].stored, Version(2));
  EXPECT_EQ(recovery().fragments[0].to_replay,
            (std::vector<RoundRecord>{RecordFor(3, {"a"}), RecordFor(4, {"a"})}));
  EXPECT_TRUE(store().OpenPayload(KeyOf("a", 2)).ok());
  EXPECT_TRUE(store().OpenPayload(KeyOf("a", 3)).ok());
}

}  // namespace
}  // namespace atl
