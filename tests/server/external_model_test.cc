// Runs whose model only the workers know: what seeds them, and who may join then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include "server/opening/run_opening.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBase[] = "0123456789abcdef";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

CoordinatorOptions ExternalRun(uint64_t parameters = 0) {
  CoordinatorOptions options = SmallRun();
  options.run.model = ModelOptions(ExternalOptions{.context = 8, .parameters = parameters});
  options.run.data.tokenizer = "none";
  return options;
}

Manifest Narrower() {
  Manifest manifest = SmallManifest();
  manifest.tensors[1].shape = {50, 9};
  return manifest;
}

std::vector<float> Ones() {
  return Fill([](size_t) { return 1.0F; });
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

JoinCall With(const WorkerName& name, const Manifest& manifest) {
  JoinCall call;
  call.worker = name;
  call.secret = "0123456789abcdef-" + name;
  call.manifest = manifest;
  call.manifest_hash = ManifestHash(manifest);
  return call;
}

JoinCall HashOnly(const WorkerName& name, const Manifest& manifest) {
  JoinCall call = With(name, manifest);
  call.manifest.reset();
  return call;
}

JoinCall Asking(const WorkerName& name) {
  JoinCall call;
  call.worker = name;
  call.secret = "0123456789abcdef-" + name;
  return call;
}

TEST(ExternalModel, IsKnownOnceItIsSeeded) {
  TestRun run(ExternalRun());
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 0U);
  EXPECT_THAT(run.coordinator().GetStatus(0).waiting.front().what,
              HasSubstr("the model is not known until the first worker joins"));
  EXPECT_FALSE(run.coordinator().Join(Asking("b"))->manifest.has_value());
  const auto first = run.coordinator().Join(With("a", SmallManifest()));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->seed_granted);
  EXPECT_FALSE(first->manifest.has_value());
  ASSERT_TRUE(run.Seed(first->member, Ones()).ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 800U);
  EXPECT_EQ(run.coordinator().GetStatus(0).tensors, 2U);
  const auto asked = run.coordinator().Join(Asking("b"));
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->manifest, SmallManifest());
  const auto second = run.coordinator().Join(With("b", SmallManifest()));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->manifest, SmallManifest());
  EXPECT_EQ(run.Published(second->member, std::nullopt), Ones());
}

TEST(ExternalModel, TheSlowerOfTwoModelsIsToldWhatDiffers) {
  TestRun run(ExternalRun());
  const auto winner = run.coordinator().Join(With("a", SmallManifest()));
  const auto loser = run.coordinator().Join(With("b", Narrower()));
  const auto twin = run.coordinator().Join(With("c", SmallManifest()));
  ASSERT_TRUE(winner.ok() && loser.ok() && twin.ok()) << "before the seed any model may join";
  EXPECT_EQ(ReasonOf(run.coordinator().StartSeed(loser->member, Narrower()).status()),
            RejectionReason::kNotSeeded);
  ASSERT_TRUE(run.Seed(winner->member, Ones()).ok());
  const absl::Status late = run.coordinator().StartSeed(loser->member, Narrower()).status();
  EXPECT_EQ(ReasonOf(late), RejectionReason::kManifestMismatch);
  EXPECT_THAT(Message(late),
              HasSubstr("the model of worker 'b' is not the run's: tensor 'b' has shape [50, 9], "
                        "and [50, 10] in the run"));
  EXPECT_TRUE(absl::IsAlreadyExists(run.coordinator().StartSeed(twin->member, SmallManifest()).status()));
  EXPECT_EQ(ReasonOf(run.Pull(loser->member).status()), RejectionReason::kManifestMismatch);
  EXPECT_EQ(ReasonOf(run.Push(loser->member, 0, Ones()).status()), RejectionReason::kManifestMismatch);
  const absl::Status again = run.coordinator().Join(With("b", Narrower())).status();
  EXPECT_EQ(ReasonOf(again), RejectionReason::kManifestMismatch);
  EXPECT_THAT(Message(again), HasSubstr("tensor 'b' has shape [50, 9], and [50, 10] in the run"));
  EXPECT_THAT(Message(run.coordinator().Join(HashOnly("b", Narrower())).status()),
              HasSubstr("send the manifest with the Join to be told what differs"));
}

TEST(ExternalModel, AnUploadThatEndsSecondIsToldWhatDiffers) {
  TestRun run(ExternalRun());
  const auto slow = run.coordinator().Join(With("a", Narrower()));
  const auto quick = run.coordinator().Join(With("b", SmallManifest()));
  ASSERT_TRUE(slow.ok() && quick.ok());
  auto upload = run.coordinator().StartSeed(slow->member, Narrower());
  ASSERT_TRUE(upload.ok()) << upload.status();
  const std::vector<float> zeros(kSmallElements, 0.0F);
  ASSERT_TRUE((*upload)->Append(FragmentId(0), 0, AsBytes(zeros)).ok());
  for (int broken = 0; broken < 3; ++broken) {
    ASSERT_TRUE(run.coordinator().StartSeed(slow->member, Narrower()).ok());
  }
  ASSERT_TRUE(run.Seed(quick->member, Ones()).ok()) << "the grant has passed on";
  const absl::Status late = (*upload)->Finish().status();
  EXPECT_EQ(ReasonOf(late), RejectionReason::kManifestMismatch);
  EXPECT_THAT(Message(late), HasSubstr("tensor 'b' has shape [50, 9], and [50, 10] in the run"));
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 800U);
}

TEST(ExternalModel, FrozenParametersAreThoseOfTheRun) {
  TestRun run(ExternalRun());
  Manifest over = SmallManifest();
  over.base_fingerprint = kBase;
  const auto joined = run.coordinator().Join(With("a", over));
  ASSERT_TRUE(joined.ok()) << joined.status();
  {
    const auto session = run.coordinator().StartSeed(joined->member, over);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Append(FragmentId(0), 0, AsBytes(Ones())).ok());
    ASSERT_TRUE((*session)->Finish().ok());
  }
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(
        Message(run.coordinator().Join(With("b", SmallManifest())).status()),
        HasSubstr("the frozen parameters differ: base_fingerprint is none, and 0123456789abcdef in the "
                  "run"));
    EXPECT_TRUE(run.coordinator().Join(With("c", over)).ok());
    ASSERT_TRUE(run.Restart().ok());
  }
}

TEST(ExternalModel, ARestartKeepsItAndForgetsOneThatWasNotStored) {
  TestRun run(ExternalRun());
  ASSERT_TRUE(run.coordinator().Join(With("a", Narrower())).ok());
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 0U);
  run.faults().seed = true;
  const auto seeder = run.coordinator().Join(With("b", SmallManifest()));
  ASSERT_TRUE(seeder.ok()) << seeder.status();
  EXPECT_EQ(ReasonOf(run.Seed(seeder->member, Ones()).status()), RejectionReason::kStorageFull);
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 0U);
  run.faults().seed = false;
  ASSERT_TRUE(run.Seed(seeder->member, Ones()).ok());
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).parameters, 800U);
  EXPECT_EQ(ReasonOf(run.coordinator().Join(With("a", Narrower())).status()),
            RejectionReason::kManifestMismatch);
  const auto observed = run.TryJoin("o", "", WorkerRole::kObserver);
  EXPECT_EQ(observed->manifest, SmallManifest());
}

TEST(ExternalModel, AnotherNumberOfParametersThanExpectedDoesNotJoin) {
  TestRun run(ExternalRun(800));
  const absl::Status rejected = run.coordinator().Join(With("a", Narrower())).status();
  EXPECT_EQ(ReasonOf(rejected), RejectionReason::kManifestMismatch);
  EXPECT_THAT(Message(rejected), HasSubstr("the run cannot begin with the model of worker 'a': "
                                           "model.external.parameters is 800, and the model has 750"));
  const auto right = run.coordinator().Join(With("b", SmallManifest()));
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_TRUE(right->seed_granted) << "nobody is ahead of it";
  EXPECT_THAT(run.coordinator().GetStatus(0).refused_joins, testing::SizeIs(1));
  EXPECT_TRUE(run.Seed(right->member, Ones()).ok());
}

TEST(ExternalModel, AnotherNumberOfParametersThanExpectedSeedsNothing) {
  TestRun run(ExternalRun(801));
  // A worker that sends no manifest with its Join.
  const auto joined = run.coordinator().Join(HashOnly("a", SmallManifest()));
  ASSERT_TRUE(joined.ok()) << joined.status();
  const absl::Status rejected = run.coordinator().StartSeed(joined->member, SmallManifest()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(Message(rejected), HasSubstr("model.external.parameters is 801, and the model has 800"));
  run.options().run.model.external()->parameters = 800;
  ASSERT_TRUE(run.Restart().ok()) << "what is expected may be corrected";
  const auto again = run.coordinator().Join(With("a", SmallManifest()));
  ASSERT_TRUE(run.Seed(again->member, Ones()).ok());
  run.options().run.model.external()->parameters = 801;
  const absl::Status started = run.Restart();
  EXPECT_THAT(Message(started), HasSubstr("model.external.parameters is 801, and the model has 800"));
}

TEST(ExternalModel, AModelThatCannotSeedLetsAnotherDoIt) {
  TestRun run(ExternalRun(800));
  const auto wrong = run.coordinator().Join(HashOnly("a", Narrower()));
  const auto right = run.coordinator().Join(With("b", SmallManifest()));
  ASSERT_TRUE(wrong.ok() && right.ok());
  EXPECT_TRUE(wrong->seed_granted);
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_TRUE(absl::IsFailedPrecondition(run.coordinator().StartSeed(wrong->member, Narrower()).status()));
  }
  EXPECT_FALSE(run.Heartbeat(wrong->member)->seed_granted);
  EXPECT_TRUE(run.Heartbeat(right->member)->seed_granted);
  EXPECT_TRUE(run.Seed(right->member, Ones()).ok());
}

/// What a worker that sends its model with its Join is told; its process then ends.
std::string JoinFault(TestRun& run, const Manifest& manifest) {
  const absl::Status rejected = run.coordinator().Join(With("a", manifest)).status();
  EXPECT_EQ(ReasonOf(rejected), RejectionReason::kManifestMismatch) << rejected;
  return Message(rejected);
}

TEST(ExternalModel, OneThatTheRunCannotHoldSeedsNothing) {
  {
    CoordinatorOptions options = ExternalRun();
    options.fragments = options.run.sync.fragments = 3;
    TestRun run(options);
    EXPECT_THAT(JoinFault(run, SmallManifest()),
                HasSubstr("cannot cut a model of 2 tensors into 3 fragments"));
    const auto joined = run.coordinator().Join(HashOnly("a", SmallManifest()));
    EXPECT_THAT(Message(run.coordinator().StartSeed(joined->member, SmallManifest()).status()),
                AllOf(HasSubstr("worker 'a' cannot seed the run"),
                      HasSubstr("cannot cut a model of 2 tensors into 3 fragments")));
  }
  CoordinatorOptions options = ExternalRun();
  options.run.contribution_budget_bytes = 4095;
  TestRun run(options);
  EXPECT_THAT(JoinFault(run, SmallManifest()), HasSubstr("limits.contribution_budget_mib"));
  const auto small = run.coordinator().Join(HashOnly("a", SmallManifest()));
  EXPECT_THAT(Message(run.coordinator().StartSeed(small->member, SmallManifest()).status()),
              HasSubstr("limits.contribution_budget_mib"));
  run.options().run.contribution_budget_bytes = UINT64_MAX;
  run.options().config_bytes = "config-2";
  ASSERT_TRUE(run.Restart().ok());
  Manifest huge;
  huge.tensors.push_back({.name = "w", .shape = {int64_t{1} << 39}});
  EXPECT_THAT(JoinFault(run, huge), HasSubstr("takes at least"));
  const auto joined = run.coordinator().Join(HashOnly("a", huge));
  ASSERT_TRUE(joined.ok()) << joined.status();
  const absl::Status rejected = run.coordinator().StartSeed(joined->member, huge).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_THAT(Message(rejected), HasSubstr("takes at least"));
}

Manifest WithAveraged() {
  Manifest manifest = SmallManifest();
  manifest.tensors[1].averaged = true;
  return manifest;
}

/// SmallManifest's first tensor.
bool IsParameter(size_t i) { return i < 300; }

absl::Status SeedWith(TestRun& run, const MemberRef& caller, const Manifest& manifest,
                      const std::vector<float>& values) {
  auto session = run.coordinator().StartSeed(caller, manifest);
  if (!session.ok()) return session.status();
  const absl::Status taken = (*session)->Append(FragmentId(0), 0, AsBytes(values));
  return taken.ok() ? (*session)->Finish().status() : taken;
}

TEST(ExternalModel, AveragedTensorsBecomeTheMeanOfTheWorkersValuesAlsoAfterARestart) {
  TestRun run(ExternalRun());
  std::vector<MemberRef> workers;
  for (const char* const name : {"a", "b"}) {
    const auto joined = run.coordinator().Join(With(name, WithAveraged()));
    ASSERT_TRUE(joined.ok()) << joined.status();
    workers.push_back(joined->member);
  }
  ASSERT_TRUE(SeedWith(run, workers[0], WithAveraged(), Ones()).ok());
  EXPECT_EQ(run.coordinator().Join(Asking("c"))->manifest, WithAveraged());
  // Nesterov with the defaults of the options, in float32.
  const OuterOptions& outer = run.options().run.outer;
  const auto eta = static_cast<float>(outer.learning_rate), mu = static_cast<float>(outer.momentum);
  std::vector<float> expected = Ones();
  std::vector<float> velocity(kSmallElements, 0.0F);
  for (uint64_t base = 0; base < 4; ++base) {
    run.WaitForStored(base);
    run.faults().store = base == 3;  // the last version is in its record only
    std::vector<std::vector<float>> deltas;
    for (size_t w = 0; w < workers.size(); ++w) {
      ASSERT_TRUE(run.Pull(workers[w]).ok());
      deltas.push_back(Fill([&](size_t i) {
        return 0.01F * static_cast<float>((i * (w + 3) + base) % 17) - 0.05F * static_cast<float>(w);
      }));
      ASSERT_TRUE(run.Push(workers[w], base, deltas[w]).ok());
    }
    for (size_t i = 0; i < kSmallElements; ++i) {
      const float first = 0.5F * deltas[0][i];
      const float second = 0.5F * deltas[1][i];
      const float mean = first + second;
      if (!IsParameter(i)) {
        expected[i] = expected[i] - mean;
        continue;
      }
      const float kept = mu * velocity[i];
      velocity[i] = kept + mean;
      const float ahead = mu * velocity[i];
      const float move = eta * (mean + ahead);
      expected[i] = expected[i] - move;
    }
    ASSERT_EQ(run.Published(workers[0], base), expected) << "version " << base + 1;
  }
  ASSERT_TRUE(run.Restart().ok()) << "the replay gives the recorded hashes";
  EXPECT_LT(run.coordinator().GetStatus(0).fragments[0].stored, Version(4)) << "nothing was replayed";
  EXPECT_EQ(run.Published(workers[0], 3), expected);
  const absl::Status without = run.coordinator().Join(With("d", SmallManifest())).status();
  EXPECT_EQ(ReasonOf(without), RejectionReason::kManifestMismatch);
  EXPECT_THAT(Message(without),
              HasSubstr("tensor 'b' is an ordinary parameter, and an averaged tensor in the run"));
}

TEST(ExternalModel, AveragedTensorsInAsyncRoundsNeedTheDelayedOptimizer) {
  CoordinatorOptions options = ExternalRun();
  options.run.round.mode = RoundMode::kAsync;
  options.run.round.staleness_limit = 3;
  options.run.outer = {.optimizer = OuterOptimizerKind::kSgd, .learning_rate = 0.5, .delay = 2};
  TestRun run(options);
  EXPECT_THAT(JoinFault(run, WithAveraged()),
              HasSubstr("averaged tensors such as 'b' needs delayed_nesterov"));
  const auto joined = run.coordinator().Join(HashOnly("a", WithAveraged()));
  ASSERT_TRUE(joined.ok()) << joined.status();
  const absl::Status refused = SeedWith(run, joined->member, WithAveraged(), Ones());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("averaged tensors such as 'b' needs delayed_nesterov"));

  options.run.outer.optimizer = OuterOptimizerKind::kDelayedNesterov;
  TestRun delayed(options);
  std::vector<MemberRef> workers;
  for (const char* const name : {"a", "b"}) {
    workers.push_back(delayed.coordinator().Join(With(name, WithAveraged()))->member);
  }
  ASSERT_TRUE(SeedWith(delayed, workers[0], WithAveraged(), Ones()).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(delayed.Pull(worker).ok());
  // Both measured on version 0: 0.25 and 0.5.
  ASSERT_TRUE(delayed.Push(workers[0], 0, Fill([](size_t) { return 0.75F; })).ok());
  ASSERT_TRUE(delayed.Pull(workers[0], 0).ok());
  ASSERT_TRUE(delayed.Push(workers[1], 0, Fill([](size_t) { return 0.5F; })).ok());
  const std::vector<float> published = delayed.Published(workers[0], 1);
  for (size_t i = 512; i < 1012; ++i) ASSERT_EQ(published[i], 0.375F) << i;
}

TEST(ExternalModel, WorkersMayHaveAnyData) {
  TestRun run(ExternalRun());
  JoinCall call = With("a", SmallManifest());
  call.dataset =
      DatasetSummary{.tokenizer = "mine", .vocabulary = 70000, .train_tokens = 1, .fingerprint = ""};
  EXPECT_TRUE(run.coordinator().Join(call).ok());
  call = With("b", SmallManifest());
  const auto none = run.coordinator().Join(call);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->data.has_value()) << "it may still divide its data by the partition";
}

TEST(ExternalModel, ATrainingLossMayBeAnyNumber) {
  TestRun run(ExternalRun());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  const double losses[][2] = {{-3.5, -0.5}, {3e5, 1e5}, {1e30, 1e30}, {-1e300, 2.5}, {kInfinity, kInfinity}};
  const double means[] = {-2, 2e5, 1e30, 2.5, 0};
  for (size_t round = 0; round < std::size(means); ++round) {
    for (size_t worker = 0; worker < 2; ++worker) {
      const auto pushed = run.Push(workers[worker], round, Fill([](size_t) { return 0.5F; }),
                                   {.loss = losses[round][worker]});
      ASSERT_TRUE(pushed.ok()) << pushed.status();
    }
    ASSERT_TRUE(run.Pull(workers[0], round).ok());
    EXPECT_DOUBLE_EQ(run.coordinator().GetStatus(1).rounds.front().train_loss, means[round])
        << "round " << round;
  }
  const auto rounds = run.admin().ListRounds(FragmentId(0), Version(0), 10);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  EXPECT_EQ(rounds->rounds[0].contributions[0].loss, -3.5);
  EXPECT_EQ(rounds->rounds[3].contributions[0].loss, 0) << "beyond the bound it is not known";
}

TEST(ExternalModel, AnEvaluationMayBeAnyNumber) {
  TestRun run(ExternalRun());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Ones());
  const double losses[] = {0, -2, 3e5};
  const auto report = [&](uint64_t version, double loss) {
    HeartbeatCall call;
    call.progress.loss = loss;
    call.evaluations.push_back({.version = Version(version), .loss = loss, .tokens = 100});
    ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], call).ok());
  };
  for (uint64_t version = 0; version < std::size(losses); ++version) {
    const auto pulled =
        run.Pull(workers[0], version == 0 ? std::nullopt : std::optional<uint64_t>(version - 1));
    ASSERT_TRUE(pulled.ok() && pulled->plan.evaluate) << version;
    for (const double absurd : {kInfinity, std::nan(""), -1e31}) report(version, absurd);
    report(version, losses[version]);
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, version, Ones()).ok());
  }
  const StatusView status = run.coordinator().GetStatus(5);
  ASSERT_EQ(status.evaluations.size(), std::size(losses));
  for (size_t i = 0; i < std::size(losses); ++i) EXPECT_EQ(status.evaluations[i].loss, losses[i]);
  report(2, -7.5);
  EXPECT_EQ(run.coordinator().ListWorkers(false)[0].progress.loss, -7.5);
}

TEST(ExternalModel, AModelOfTheConfigurationIsNoExternalOne) {
  RunOptions recorded = SmallRun().run;
  RunOptions now = recorded;
  now.model = ModelOptions(ExternalOptions());
  EXPECT_THAT(Message(CheckSettled(recorded, now)),
              HasSubstr("model is fixed when a run begins: this run has 'gpt', the configuration says "
                        "'external'"));
  recorded.model = ModelOptions(ExternalOptions{.context = 2});
  EXPECT_THAT(Message(CheckSettled(recorded, now)), HasSubstr("model.external.context is fixed"));
}

}  // namespace
}  // namespace atl
