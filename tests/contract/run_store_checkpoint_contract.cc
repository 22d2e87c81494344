#include <gmock/gmock.h>

#include <algorithm>
#include <span>
#include <utility>

#include "tests/contract/run_store_contract.h"

// Checkpoints, and contents that take the place of others.

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CheckpointRequest Named(const std::string& name, int64_t created = 1) {
  return {.name = name, .automatic = false, .created_unix_ns = created, .software_version = "test"};
}

/// A start of this epoch for fragments whose heads are `heads`.
EpochStart StartAt(Epoch epoch, const std::vector<FragmentLayout>& layouts,
                   const std::vector<FragmentTensorsView>& tensors, const std::vector<uint64_t>& heads) {
  EpochStart start{.epoch = epoch,
                   .layouts = layouts,
                   .tensors = tensors,
                   .records = {},
                   .partitions = {{.partition = 1, .samples_consumed = 5}}};
  for (size_t i = 0; i < layouts.size(); ++i) {
    RoundRecord record;
    record.epoch = epoch;
    record.fragment = layouts[i].id;
    record.version = Version(heads[i] + 1);
    record.config_version = 1;
    record.committed_tokens = 77;
    record.close_reason = "restored";
    start.records.push_back(record);
  }
  return start;
}

TEST_P(RunStoreContract, ACheckpointHoldsTheRunAsItWas) {
  CreateAndSeed();
  PushAndCommit(1, {"a", "b"});
  ASSERT_TRUE(Store(1, 2).ok());
  PushAndCommit(2, {"a"});
  const auto made = store().CreateCheckpoint(Named("first"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->manifest.versions, ElementsAre(Version(2)));
  EXPECT_EQ(made->manifest.committed_tokens, 8000u);
  EXPECT_EQ(made->manifest.epoch, identity_.epoch);
  EXPECT_EQ(made->manifest.run_id, identity_.run_id);
  // Everything moves on, and what the checkpoint shares with the run is let go of there.
  for (uint64_t version = 3; version <= 5; ++version) {
    ASSERT_TRUE(Store(version - 1, 1).ok());
    PushAndCommit(version, {"b"});
  }
  ASSERT_TRUE(Store(5, 1).ok());
  const auto opened = store().OpenCheckpoint("first", CheckpointUse::kRestore);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->recovery.fragments.size(), 1u);
  EXPECT_EQ(opened->recovery.fragments[0].stored, Version(1));
  EXPECT_EQ(opened->recovery.fragments[0].head, Version(2));
  ASSERT_EQ(opened->recovery.fragments[0].to_replay.size(), 1u);
  EXPECT_EQ(opened->source->ReadVersion(layout(), Version(1))->parameters, TensorsAt(0, 1).parameters);
  EXPECT_EQ(opened->source->ReadVersion(layout(), Version(1))->state, TensorsAt(0, 1).state);
  EXPECT_EQ(BytesOf(**opened->source->OpenPayload(KeyOf("a", 1))), PayloadFor(KeyOf("a", 1)));
  EXPECT_EQ(opened->source->ReadVersion(layout(), Version(5)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(opened->source->OpenPayload(KeyOf("b", 4)).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RunStoreContract, RangesOfAVectorAreReadAlone) {
  CreateAndSeed(2);
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Store(1, 1).ok());
  ASSERT_TRUE(store().CreateCheckpoint(Named("one")).ok());
  const auto opened = store().OpenCheckpoint("one", CheckpointUse::kRead);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const FragmentTensors whole = TensorsAt(0, 1);
  const uint64_t last = layout().elements;
  ASSERT_GT(last, 2 * kChunkElements);
  const std::pair<uint64_t, uint64_t> ranges[] = {
      {0, 1}, {kChunkElements - 3, 7}, {100, 2 * kChunkElements}, {last - 5, 5}, {last, 0}, {0, last}};
  for (VersionSource* const source : {static_cast<VersionSource*>(&store()), opened->source.get()}) {
    for (const auto& [first, size] : ranges) {
      std::vector<float> values(size);
      ASSERT_TRUE(source->ReadRange(layout(), Version(1), {.vector = 0, .first = first}, values).ok());
      EXPECT_TRUE(std::ranges::equal(values, std::span(whole.parameters).subspan(first, size))) << first;
      ASSERT_TRUE(source->ReadRange(layout(), Version(1), {.vector = 1, .first = first}, values).ok());
      EXPECT_TRUE(std::ranges::equal(values, std::span(whole.state[0]).subspan(first, size))) << first;
    }
    std::vector<float> values(2);
    const auto code = [&](uint64_t version, const VectorPosition& from) {
      return source->ReadRange(layout(), Version(version), from, values).code();
    };
    EXPECT_EQ(code(1, {.vector = 0, .first = last - 1}), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(code(1, {.vector = 2, .first = 0}), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(code(1, {.vector = 0, .first = UINT64_MAX}), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(code(0, {}), absl::StatusCode::kNotFound) << "it is not kept";
  }
}

TEST_P(RunStoreContract, ACheckpointLeavesOutTheOpenRound) {
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Push(KeyOf("open", 1)).ok());
  ASSERT_TRUE(store().CreateCheckpoint(Named("first")).ok());
  const auto opened = store().OpenCheckpoint("first", CheckpointUse::kRestore);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->recovery.fragments[0].accepted.empty());
  EXPECT_EQ(opened->source->OpenPayload(KeyOf("open", 1)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(opened->source->OpenPayload(KeyOf("a", 0)).ok());
  // The run still has it.
  Reopen();
  ASSERT_EQ(recovery().fragments[0].accepted.size(), 1u);
  EXPECT_TRUE(store().OpenPayload(KeyOf("open", 1)).ok());
}

TEST_P(RunStoreContract, CheckpointsAreListedInOrderAndDeleted) {
  CreateAndSeed();
  EXPECT_TRUE(store().ListCheckpoints(true)->empty());
  ASSERT_TRUE(store().CreateCheckpoint(Named("z-older", 10)).ok());
  ASSERT_TRUE(store().CreateCheckpoint(Named("a-newer", 20)).ok());
  EXPECT_EQ(store().CreateCheckpoint(Named("a-newer", 30)).status().code(), absl::StatusCode::kAlreadyExists);
  for (const char* name : {"", "../up", "Upper", ".hidden", "a/b"}) {
    EXPECT_EQ(store().CreateCheckpoint(Named(name)).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  for (int life = 0; life < 2; ++life) {
    const auto listed = store().ListCheckpoints(true);
    ASSERT_TRUE(listed.ok()) << listed.status();
    ASSERT_EQ(listed->size(), 2u);
    EXPECT_EQ((*listed)[0].manifest.name, "z-older");
    EXPECT_EQ((*listed)[1].manifest.name, "a-newer");
    EXPECT_EQ((*listed)[1].damage, "");
    Reopen();
  }
  EXPECT_EQ(store().DeleteCheckpoint("nowhere").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().OpenCheckpoint("nowhere", CheckpointUse::kRestore).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(store().DeleteCheckpoint("z-older").ok());
  EXPECT_EQ(store().ListCheckpoints(false)->size(), 1u);
  EXPECT_EQ(store().OpenCheckpoint("z-older", CheckpointUse::kRestore).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(RunStoreContract, ARunWithoutParametersHasNothingToCheckpoint) {
  EXPECT_EQ(store().CreateCheckpoint(Named("early")).status().code(), absl::StatusCode::kFailedPrecondition);
  Create();
  EXPECT_EQ(store().CreateCheckpoint(Named("early")).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(RunStoreContract, ANewEpochTakesEverythingToTheNextVersion) {
  CreateAndSeed(2);
  for (uint32_t f = 0; f < 2; ++f) {
    PushAndCommit(1, {"a"}, f);
    ASSERT_TRUE(Store(1, 2, f).ok());
  }
  PushAndCommit(2, {"a", "b"}, 0);  // not stored
  ASSERT_TRUE(Push(KeyOf("late", 2, 0)).ok());
  const FragmentTensors t0 = TensorsAt(0, 70);
  const FragmentTensors t1 = TensorsAt(1, 71);
  const Epoch epoch(0x1234);
  const EpochStart start = StartAt(epoch, layouts_, {ViewOf(t0), ViewOf(t1)}, {2, 1});
  const absl::Status begun = store().BeginEpoch(start);
  ASSERT_TRUE(begun.ok()) << begun;
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(store().ReadVersion(layout(0), Version(3))->parameters, t0.parameters);
    EXPECT_EQ(store().ReadVersion(layout(1), Version(2))->state, t1.state);
    EXPECT_EQ(store().ReadRound(FragmentId(0), Version(3))->committed_tokens, 77u);
    EXPECT_EQ(store().ReadRound(FragmentId(0), Version(2))->contributions.size(), 2u);
    // What no round took is gone, what made a version that is kept is not.
    EXPECT_EQ(store().OpenPayload(KeyOf("late", 2, 0)).status().code(), absl::StatusCode::kNotFound);
    EXPECT_TRUE(store().OpenPayload(KeyOf("b", 1, 0)).ok());
    // Nothing of the old epoch enters.
    EXPECT_EQ(store().StartUpload(KeyOf("c", 3, 0), 10).status().code(),
              absl::StatusCode::kFailedPrecondition);
    Reopen();
    EXPECT_EQ(recovery().identity.epoch, epoch);
    EXPECT_EQ(recovery().fragments[0].head, Version(3));
    EXPECT_EQ(recovery().fragments[0].stored, Version(3));
    EXPECT_EQ(recovery().fragments[1].head, Version(2));
    EXPECT_TRUE(recovery().fragments[0].to_replay.empty());
    EXPECT_TRUE(recovery().fragments[0].accepted.empty());
    ASSERT_EQ(recovery().partitions.size(), 1u);
    EXPECT_EQ(recovery().partitions[0].samples_consumed, 5u);
  }
  // The run goes on in the new epoch.
  identity_.epoch = epoch;
  PushAndCommit(4, {"a"}, 0);
  ASSERT_TRUE(Store(4, 1, 0).ok());
  EXPECT_EQ(store().ReadVersion(layout(0), Version(3)).status().code(), absl::StatusCode::kNotFound);
  Reopen();
  EXPECT_EQ(recovery().fragments[0].head, Version(4));
}

TEST_P(RunStoreContract, ANewEpochReplacesTheRecordsOfTheWorkersItNames) {
  CreateAndSeed();
  for (const char* name : {"a", "b"}) ASSERT_TRUE(store().PutWorker(WorkerNamed(name)).ok());
  const FragmentTensors tensors = TensorsAt(0, 9);
  EpochStart start = StartAt(Epoch(9), layouts_, {ViewOf(tensors)}, {0});
  start.workers = {WorkerNamed("../up")};
  EXPECT_EQ(store().BeginEpoch(start).code(), absl::StatusCode::kInvalidArgument);
  WorkerEntry gone = WorkerNamed("a");
  gone.departed = true;
  start.workers = {gone};
  ASSERT_TRUE(store().BeginEpoch(start).ok());
  Reopen();
  EXPECT_THAT(recovery().workers, ElementsAre(gone, WorkerNamed("b")));
}

TEST_P(RunStoreContract, AnUploadOfTheOldEpochCannotBeAcceptedInTheNewOne) {
  CreateAndSeed();
  const ContributionKey key = KeyOf("slow", 0);
  const std::string payload = PayloadFor(key);
  auto upload = store().StartUpload(key, payload.size());
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE(AppendString(**upload, payload).ok());
  const FragmentTensors tensors = TensorsAt(0, 9);
  ASSERT_TRUE(store().BeginEpoch(StartAt(Epoch(9), layouts_, {ViewOf(tensors)}, {0})).ok());
  EXPECT_EQ((*upload)->Accept(ContributionFor(key)).code(), absl::StatusCode::kFailedPrecondition);
  upload->reset();
  Reopen();
  EXPECT_TRUE(recovery().fragments[0].accepted.empty());
}

TEST_P(RunStoreContract, ContentsThatDoNotFitAreRejectedAsAWhole) {
  CreateAndSeed(2);
  const FragmentTensors t0 = TensorsAt(0, 7);
  FragmentTensors t1 = TensorsAt(1, 7);
  const auto rejected = [&](const EpochStart& start) {
    return store().BeginEpoch(start).code() == absl::StatusCode::kInvalidArgument;
  };
  const std::vector<FragmentTensorsView> views = {ViewOf(t0), ViewOf(t1)};
  EXPECT_TRUE(rejected(StartAt(identity_.epoch, layouts_, views, {0, 0})));  // not new
  EXPECT_TRUE(rejected(StartAt(Epoch(5), layouts_, views, {1, 0})));         // passes over a version
  EXPECT_TRUE(rejected(StartAt(Epoch(5), {layout(0)}, {views[0]}, {0})));    // not all of them
  t1.state[0].pop_back();
  EXPECT_TRUE(rejected(StartAt(Epoch(5), layouts_, {ViewOf(t0), ViewOf(t1)}, {0, 0})));
  Reopen();
  EXPECT_EQ(recovery().identity.epoch, identity_.epoch);
  EXPECT_EQ(recovery().fragments[0].head, Version(0));
}

TEST_P(RunStoreContract, RoundsAndStoredVersionsCanBeAskedFor) {
  EXPECT_EQ(store().Stored(FragmentId(0)).status().code(), absl::StatusCode::kFailedPrecondition);
  CreateAndSeed();
  PushAndCommit(1, {"a"});
  ASSERT_TRUE(Store(1, 2).ok());
  EXPECT_EQ(*store().ReadRound(FragmentId(0), Version(1)), RecordFor(1, {"a"}));
  EXPECT_EQ(store().ReadRound(FragmentId(0), Version(2)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store().Stored(FragmentId(0))->versions, ElementsAre(Version(0), Version(1)));
  EXPECT_EQ(store().Stored(FragmentId(7)).status().code(), absl::StatusCode::kNotFound);
  std::vector<float> parameters(layout().elements);
  const FragmentTensorsTarget short_target{.parameters = parameters, .state = {}};
  EXPECT_THAT(store().ReadInto(layout(), Version(1), short_target).ToString(), HasSubstr("state vectors"));
}

}  // namespace
}  // namespace atl
