#include <gmock/gmock.h>

#include "tests/contract/run_store_contract.h"

namespace atl {
namespace {

using testing::HasSubstr;

TEST_P(RunStoreContract, AnEmptyPlaceHoldsNoRun) {
  EXPECT_FALSE(found_a_run());
  EXPECT_EQ(store().Recover().status().code(), absl::StatusCode::kFailedPrecondition);  // read once
  EXPECT_EQ(store().PutWorker(WorkerNamed("a")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store().PutConfig(ConfigAt(1)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store().StartUpload(KeyOf("a", 0), 10).status().code(), absl::StatusCode::kFailedPrecondition);
  Reopen();
  EXPECT_FALSE(found_a_run());
}

TEST_P(RunStoreContract, ARunIsFoundAgainBeforeItIsSeeded) {
  Create();
  Reopen();
  ASSERT_TRUE(found_a_run());
  EXPECT_EQ(recovery().identity, identity_);
  EXPECT_EQ(recovery().configs.size(), 1u);
  EXPECT_FALSE(recovery().manifest.has_value());
  EXPECT_TRUE(recovery().fragments.empty());
  EXPECT_EQ(store().CreateRun(identity_, ConfigAt(1)).code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(RunStoreContract, ARunThatCannotBeIsRejected) {
  RunIdentity bad = identity_;
  bad.shards = 0;
  EXPECT_THAT(store().CreateRun(bad, ConfigAt(1)).ToString(), HasSubstr("shards"));
  bad = identity_;
  bad.chunk_elements = 0;
  EXPECT_THAT(store().CreateRun(bad, ConfigAt(1)).ToString(), HasSubstr("chunk_elements"));
  EXPECT_EQ(store().CreateRun(identity_, ConfigAt(2)).code(), absl::StatusCode::kInvalidArgument);
  Reopen();
  EXPECT_FALSE(found_a_run());
  Create();
}

TEST_P(RunStoreContract, SmallThingsComeBackInOrder) {
  Create();
  const ConfigEntry second{.version = 2, .recorded_unix_ns = -5, .bytes = std::string("\0b", 2)};
  EXPECT_EQ(store().PutConfig(ConfigAt(3)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store().PutConfig(second).ok());
  const WorkerEntry b{.name = "b",
                      .secret_hash = "cafe",
                      .incarnation = Incarnation(9),
                      .role = 1,
                      .partition = 4,
                      .departed = true};
  const WorkerEntry a{.name = "a.1-x",
                      .secret_hash = "",
                      .incarnation = Incarnation(1),
                      .role = 0,
                      .partition = std::nullopt,
                      .departed = false};
  ASSERT_TRUE(store().PutWorker(b).ok());
  ASSERT_TRUE(store().PutWorker(WorkerNamed("a.1-x")).ok());
  ASSERT_TRUE(store().PutWorker(a).ok());
  const EvaluationEntry evaluation{
      .fragment = FragmentId(0), .version = Version(3), .loss = 1.5, .tokens = 99, .unix_ns = 7};
  EvaluationEntry scored = evaluation;
  scored.version = Version(4);
  scored.tasks = {
      {.task = "mmlu", .metric = "acc", .value = 0.25, .standard_error = 0.125, .questions = 9},
      {.task = "mmlu", .metric = "answers_acc", .value = 0.5, .standard_error = 0, .questions = 9}};
  ASSERT_TRUE(store().PutEvaluation(scored).ok());
  ASSERT_TRUE(store().PutEvaluation(evaluation).ok());
  Reopen();
  ASSERT_EQ(recovery().configs.size(), 2u);
  EXPECT_EQ(recovery().configs[1], second);
  EXPECT_EQ(recovery().workers, (std::vector<WorkerEntry>{a, b}));
  EXPECT_EQ(recovery().evaluations, (std::vector<EvaluationEntry>{evaluation, scored}));
}

TEST_P(RunStoreContract, ForgottenWorkersAreGone) {
  EXPECT_EQ(store().ReplaceWorkers({}, {"a"}).code(), absl::StatusCode::kFailedPrecondition);
  Create();
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(store().PutWorker(WorkerNamed(name)).ok());
  WorkerEntry banned = WorkerNamed("b");
  banned.banned = true;
  ASSERT_TRUE(store().ReplaceWorkers({banned, WorkerNamed("d")}, {"a", "c", "never-seen"}).ok());
  Reopen();
  EXPECT_EQ(recovery().workers, (std::vector<WorkerEntry>{banned, WorkerNamed("d")}));
}

TEST_P(RunStoreContract, ConfirmationsStayAsLongAsTheirVersion) {
  const auto confirmation = [](uint64_t version, const WorkerName& worker) {
    return ConfirmationEntry{.fragment = FragmentId(0),
                             .version = Version(version),
                             .worker = worker,
                             .published = {.low = version, .high = 7},
                             .signature = "by " + worker};
  };
  CreateAndSeed();
  for (const char* worker : {"b", "a"}) {
    ASSERT_TRUE(store().PutConfirmation(confirmation(0, worker)).ok());
    ASSERT_TRUE(store().PutConfirmation(confirmation(0, worker)).ok()) << "again";
  }
  Reopen();
  const std::vector<ConfirmationEntry> both = {confirmation(0, "a"), confirmation(0, "b")};
  EXPECT_EQ(*store().Confirmations(FragmentId(0), Version(0)), both);
  EXPECT_TRUE(store().Confirmations(FragmentId(0), Version(1))->empty());
  EXPECT_TRUE(store().Confirmations(FragmentId(1), Version(0))->empty());
  for (uint64_t version = 1; version <= 3; ++version) {
    PushAndCommit(version, {"a"});
    ASSERT_TRUE(store().PutConfirmation(confirmation(version, "a")).ok());
    ASSERT_TRUE(Store(version, 2).ok());
  }
  EXPECT_TRUE(store().Confirmations(FragmentId(0), Version(1))->empty());
  EXPECT_EQ(store().Confirmations(FragmentId(0), Version(2))->size(), 1u);
  EXPECT_EQ(store().Confirmations(FragmentId(0), Version(3))->size(), 1u);
}

TEST_P(RunStoreContract, TheLastWordOfAnOperatorIsKept) {
  ControlEntry control{
      .mode = RunMode::kPaused, .unix_ns = 5, .author = "ann", .reason = "new disks", .workers = 3};
  EXPECT_EQ(store().PutControl(control).code(), absl::StatusCode::kFailedPrecondition) << "there is no run";
  Create();
  Reopen();
  EXPECT_FALSE(recovery().control.has_value());
  ASSERT_TRUE(store().PutControl(control).ok());
  control.mode = RunMode::kStopped;
  ASSERT_TRUE(store().PutControl(control).ok());
  Reopen();
  EXPECT_EQ(recovery().control, control);
}

TEST_P(RunStoreContract, AWorkersNameCannotLeaveItsKey) {
  Create();
  for (const std::string& name :
       {std::string(), std::string("../a"), std::string("A"), std::string("a/b"), std::string("a\0b", 3),
        std::string(kMaxWorkerName + 1, 'a'), std::string(".a")}) {
    EXPECT_EQ(store().PutWorker(WorkerNamed(name)).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_P(RunStoreContract, EventsAreReadInPages) {
  Create();
  for (uint64_t i = 1; i <= 300; ++i) {
    ASSERT_TRUE(store().AppendEvent({.sequence = i, .bytes = "event " + std::to_string(i)}).ok());
  }
  const auto page = store().ReadEvents(254, 5);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->size(), 5u);
  EXPECT_EQ(page->front().sequence, 255u);
  EXPECT_EQ(page->back().bytes, "event 259");
  EXPECT_EQ(store().ReadEvents(298, 100)->size(), 2u);
  EXPECT_TRUE(store().ReadEvents(300, 100)->empty());
  EXPECT_TRUE(store().ReadEvents(UINT64_MAX, 100)->empty());
  EXPECT_TRUE(store().ReadEvents(0, 0)->empty());
  Reopen();
  EXPECT_EQ(recovery().last_event_sequence, 300u);
  EXPECT_EQ(store().ReadEvents(0, 1000)->size(), 300u);
}

TEST_P(RunStoreContract, SeedingMakesVersionZeroOfEveryFragment) {
  CreateAndSeed(2);
  for (int life = 0; life < 2; ++life) {
    for (uint32_t f = 0; f < 2; ++f) {
      const auto read = store().ReadVersion(layout(f), Version(0));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->parameters, TensorsAt(f, 0).parameters);
      EXPECT_EQ(read->state, TensorsAt(f, 0).state);
    }
    Reopen();
    EXPECT_EQ(recovery().manifest, manifest_);
    ASSERT_EQ(recovery().fragments.size(), 2u);
    EXPECT_EQ(recovery().fragments[1].stored, Version(0));
    EXPECT_EQ(recovery().fragments[1].head, Version(0));
  }
  const FragmentTensors other = TensorsAt(0, 9);
  EXPECT_EQ(store().Seed(manifest_, {layout(0)}, {ViewOf(other)}).code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(RunStoreContract, ASeedThatDoesNotFitIsRejectedAsAWhole) {
  Create();
  layouts_ = *PlanFragments(manifest_, 2);
  const FragmentTensors first = TensorsAt(0, 0);
  FragmentTensors second = TensorsAt(1, 0);
  second.state[0].pop_back();
  EXPECT_THAT(store().Seed(manifest_, layouts_, {ViewOf(first), ViewOf(second)}).ToString(),
              HasSubstr("state vector"));
  EXPECT_EQ(store().Seed(manifest_, layouts_, {ViewOf(first)}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().ReadVersion(layout(0), Version(0)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  Reopen();
  EXPECT_FALSE(recovery().manifest.has_value());
  const FragmentTensors whole = TensorsAt(1, 0);
  EXPECT_TRUE(store().Seed(manifest_, layouts_, {ViewOf(first), ViewOf(whole)}).ok());
}

TEST_P(RunStoreContract, AnImportThatSeededNothingIsTold) {
  ASSERT_TRUE(store().NoteImport("/models/a.safetensors").ok());
  Reopen();
  EXPECT_FALSE(found_a_run()) << "nothing was recorded, so nothing was interrupted";
  Create();
  Reopen();
  EXPECT_EQ(recovery().interrupted_import, "") << "the note of an import before it is gone";
  ASSERT_TRUE(store().NoteImport("/models/b.safetensors").ok());
  for (int life = 0; life < 2; ++life) {
    Reopen();
    EXPECT_EQ(recovery().interrupted_import, "/models/b.safetensors");
  }
  layouts_ = *PlanFragments(manifest_, 1);
  const FragmentTensors tensors = TensorsAt(0, 0);
  ASSERT_TRUE(store().Seed(manifest_, layouts_, {ViewOf(tensors)}).ok());
  Reopen();
  EXPECT_EQ(recovery().interrupted_import, "");
  EXPECT_TRUE(recovery().manifest.has_value());
}

TEST_P(RunStoreContract, DiskBytesGrowWithWhatIsStored) {
  Create();
  const uint64_t before = *store().DiskBytes();
  layouts_ = *PlanFragments(manifest_, 1);
  const FragmentTensors tensors = TensorsAt(0, 0);
  ASSERT_TRUE(store().Seed(manifest_, layouts_, {ViewOf(tensors)}).ok());
  EXPECT_GE(*store().DiskBytes(), before + 2 * layout().elements * sizeof(float));
}

}  // namespace
}  // namespace atl
