#include "cli/dashboard.h"

#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/text.h"
#include "cli/worker_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::GetStatusReply Training() {
  v1::GetStatusReply status;
  status.set_run_id("0123456789abcdef");
  status.set_run_name("reef");
  status.set_state(v1::RUN_STATE_TRAINING);
  status.set_uptime_s(133);
  status.set_run_seconds(7300);
  status.set_live_trainers(1);
  status.mutable_config()->mutable_run()->set_rounds(40);
  status.mutable_config()->mutable_inner()->set_steps(50);
  status.set_committed_tokens(300);
  status.set_total_tokens(1000);
  status.set_position_steps(600);
  status.set_total_steps(2000);
  status.set_learning_rate(8.1e-4);
  status.set_tokens_per_second(11234);
  status.set_eta_seconds(185);
  status.mutable_traffic()->set_push_bytes(10 << 20);
  status.mutable_traffic()->set_pull_bytes(10 << 20);
  status.mutable_traffic()->set_data_parallel_bytes(uint64_t{1000} << 20);
  auto* fragment = status.add_fragments();
  fragment->set_version(12);
  fragment->set_waiting_for("waiting for w2, w3 (2 of 4 arrived)");
  fragment->set_wait_ends_in_s(590);
  for (uint64_t version = 1; version <= 12; ++version) {
    auto* round = status.add_rounds();
    round->set_version(version);
    round->set_train_loss(5.0 - 0.2 * static_cast<double>(version));
    round->set_committed_tokens(25 * version);
  }
  for (const uint64_t version : {0, 12}) {
    auto* evaluation = status.add_evaluations();
    evaluation->set_version(version);
    evaluation->set_loss(version == 0 ? 5.545 : 2.5);
  }
  *status.mutable_first_evaluation() = status.evaluations(0);
  return status;
}

v1::ListWorkersReply OneWorker(const std::string& name) {
  v1::ListWorkersReply workers;
  auto* worker = workers.add_workers();
  worker->set_name(name);
  worker->set_state("active");
  worker->set_lease_remaining_s(14.2);
  worker->mutable_progress()->set_phase(v1::WORKER_PHASE_TRAINING);
  worker->mutable_progress()->set_step(23);
  worker->mutable_progress()->set_steps(50);
  return workers;
}

std::string Render(const v1::GetStatusReply& status, const v1::ListWorkersReply& workers) {
  return absl::StrJoin(RenderDashboard(status, workers, {.width = 150, .height = 40, .colour = false}), "\n");
}

TEST(Dashboard, ShowsEverythingAUserAsksFor) {
  EXPECT_THAT(Render(Training(), OneWorker("w0")),
              AllOf(HasSubstr("version 12  "), HasSubstr("30 % of 1.00k tokens"),
                    HasSubstr("inner step 600 of 2000"), HasSubstr("8.10e-04"), HasSubstr("11.2k tok/s"),
                    HasSubstr("validation loss 2.500 (perplexity 12.18)"), HasSubstr("from 5.545"),
                    HasSubstr("train loss 2.600 at version 12"), HasSubstr("50x fewer"),
                    HasSubstr("waiting for w2, w3 (2 of 4 arrived), at most 9m 50s more"),
                    HasSubstr("~3m 05s left"), HasSubstr("w0"), HasSubstr("23/50")));
}

TEST(Dashboard, AnExternalModelIsShownOnceItIsKnown) {
  v1::GetStatusReply status = Training();
  EXPECT_THAT(Render(status, OneWorker("w0")), Not(HasSubstr(" model ")));
  status.mutable_config()->mutable_model()->mutable_external();
  EXPECT_THAT(Render(status, OneWorker("w0")), HasSubstr("model not known until the first worker joins"));
  status.set_parameters(800);
  status.set_tensors(3);
  EXPECT_THAT(Render(status, OneWorker("w0")),
              HasSubstr("model 3 tensors, 800 parameters, from the workers"));
  EXPECT_THAT(absl::StrJoin(RenderSummary(status, {}), "\n"), HasSubstr("3 tensors, 800 parameters"));
}

TEST(Dashboard, TheLossOfAnExternalModelMayBeAnyNumber) {
  v1::GetStatusReply status = Training();
  status.mutable_config()->mutable_model()->mutable_external();
  const auto text_with = [&](double loss) {
    for (auto& round : *status.mutable_rounds()) round.set_train_loss(loss);
    status.mutable_evaluations(1)->set_loss(loss);
    const std::string text =
        Render(status, OneWorker("w0")) + absl::StrJoin(RenderSummary(status, {}), "\n") + RenderLine(status);
    EXPECT_THAT(text, AllOf(Not(HasSubstr("perplexity")), Not(HasSubstr("inf")))) << loss;
    return text;
  };
  EXPECT_THAT(text_with(-1.5), AllOf(HasSubstr("validation loss -1.500 at version 12"),
                                     HasSubstr("train loss -1.500 at version 12")));
  EXPECT_THAT(text_with(0), HasSubstr("validation loss 0.000 at version 12"));
  EXPECT_THAT(text_with(3e-7), HasSubstr("validation loss 3e-07 at version 12"));
  EXPECT_THAT(text_with(1e30), HasSubstr("validation loss 1e+30 at version 12"));
}

TEST(Dashboard, AWorkerThatHasNotReportedYetPrepares) {
  v1::ListWorkersReply workers = OneWorker("w0");
  workers.mutable_workers(0)->clear_progress();
  const std::string text = Render(Training(), workers);
  EXPECT_THAT(text, AllOf(HasSubstr(" preparing   -  "), Not(HasSubstr("0/0"))));
}

TEST(Dashboard, NoSpeedIsNotASpeedOfZero) {
  v1::GetStatusReply status = Training();
  status.set_live_trainers(2);
  status.set_tokens_per_second(0);
  status.set_eta_seconds(0);
  for (const std::string& text : {Render(status, OneWorker("w0")), RenderLine(status)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("speed not known yet"), HasSubstr("time left not known yet"),
                            Not(HasSubstr("tok/s, "))));
  }
}

TEST(Dashboard, AVersionBeyondThePlannedRoundsIsNoContradiction) {
  // A worker missed rounds, or the run was restored: progress is by tokens, and versions go on being counted.
  v1::GetStatusReply status = Training();
  status.mutable_fragments(0)->set_version(43);
  for (const std::string& text : {Render(status, OneWorker("w0")), RenderLine(status)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("version 43"), HasSubstr("of 1.00k tokens"), Not(HasSubstr("round"))));
  }
}

TEST(Dashboard, AFinishedRunIsNotAtAStepBeyondThePlan) {
  v1::GetStatusReply status = Training();
  status.set_state(v1::RUN_STATE_FINISHED);
  status.mutable_fragments(0)->set_version(43);
  status.set_committed_tokens(1012);
  status.set_position_steps(2024);
  for (const std::string& text : {Render(status, OneWorker("w0")), RenderLine(status)}) {
    EXPECT_THAT(text, AllOf(HasSubstr("version 43 after 1.01k tokens (1.00k planned)"),
                            Not(HasSubstr(" of 1.00k")), Not(HasSubstr("inner step"))));
  }
  EXPECT_THAT(RenderLine(status), HasSubstr("finished: version 43 after"));
  EXPECT_THAT(absl::StrJoin(RenderSummary(status, {.colour = false}), "\n"),
              HasSubstr("tokens           1.01k (1.00k planned)"));
}

TEST(Dashboard, DrawsTheCurves) {
  EXPECT_THAT(Render(Training(), OneWorker("w0")),
              AllOf(HasSubstr("train loss   "), HasSubstr("5.545 ┤"), HasSubstr("└──")));
}

TEST(Dashboard, DrawsOnlyTheBranchThatLedToTheHeadAfterARestore) {
  v1::GetStatusReply status = Training();  // version 12, 300 tokens
  const auto add = [&](uint64_t version, uint64_t tokens, double loss) {
    auto* round = status.add_rounds();
    round->set_version(version);
    round->set_committed_tokens(tokens);
    round->set_train_loss(loss);
  };
  status.mutable_rounds(11)->set_train_loss(1.125);  // only the abandoned branch came that low
  status.mutable_evaluations(1)->set_loss(1.0625);
  add(13, 100, 0);
  add(14, 125, 4.0);
  add(15, 150, 3.5);
  status.mutable_fragments(0)->set_version(15);
  EXPECT_THAT(Render(status, OneWorker("w0")),
              AllOf(HasSubstr("train loss, restored at step 200   "), HasSubstr("step 0 to 300"),
                    HasSubstr("5.545 ┤"), HasSubstr("3.500 ┤"), Not(HasSubstr("1.125 ┤")),
                    Not(HasSubstr("1.062 ┤"))));
}

TEST(Dashboard, ARunThatWasRestoredIsDrawnFromTheRoundsThatLedToItsHead) {
  v1::GetStatusReply status = Training();  // versions 1 to 12
  status.mutable_rounds()->DeleteSubrange(5, 6);
  EXPECT_THAT(Render(status, OneWorker("w0")), HasSubstr("train loss, restored at step 600   "));
}

TEST(Dashboard, BeforeTheFirstRoundNoTrainLossIsKnown) {
  v1::GetStatusReply status = Training();
  status.clear_rounds();
  EXPECT_THAT(absl::StrJoin(RenderStatus(status, {}), "\n"), HasSubstr("train loss not known yet"));
}

TEST(Dashboard, ASteepBeginningSetsTheScaleAndAValueThatStandsAloneDoesNot) {
  v1::GetStatusReply status = Training();
  status.clear_rounds();
  status.clear_evaluations();
  for (uint64_t version = 1; version <= 120; ++version) {
    auto* round = status.add_rounds();
    round->set_version(version);
    round->set_committed_tokens(version);
    round->set_train_loss(version == 60 ? 9e9 : 3 + 2.5 / static_cast<double>(version));
  }
  // The edge is where a value that stands alone is drawn; the first point is within it.
  const std::string screen = Render(status, OneWorker("w0"));
  double top = 0;
  const size_t label = screen.find(" ┤");
  ASSERT_NE(label, std::string::npos);
  top = std::stod(screen.substr(label - 8, 8));
  EXPECT_GE(top, 5.5);
  EXPECT_LT(top, 10);
}

TEST(Dashboard, TheAxisIsThatOfTheScheduleWhateverTheStepsOfARoundAreNow) {
  // 300 of 1000 tokens are inner step 600 of 2000; then inner.steps was set from 50 to 5.
  v1::GetStatusReply status = Training();
  for (const int steps : {50, 5}) {
    status.mutable_config()->mutable_inner()->set_steps(steps);
    EXPECT_THAT(Render(status, OneWorker("w0")), HasSubstr("step 0 to 600"));
  }
}

TEST(Dashboard, FitsATerminalOf80Times24WithTheRunsNameAtItsTop) {
  v1::GetStatusReply status = Training();
  status.set_run_id(std::string(16, 'f'));
  status.set_security_warning(
      std::string("other machines can reach a port of the run in plain text; ") +
      "whoever listens on the way can read the parameters, the tokens and the losses");
  v1::ListWorkersReply workers;
  for (int i = 0; i < 30; ++i) {
    auto* worker = workers.add_workers();
    *worker = OneWorker("a-worker-with-a-long-name-" + std::to_string(i)).workers(0);
    worker->mutable_progress()->set_waiting_for("the coordinator, to push the contribution to version 12");
  }
  for (const bool colour : {false, true}) {
    for (const auto& [width, height] :
         {std::pair(80, 24), std::pair(60, 12), std::pair(20, 5), std::pair(160, 50)}) {
      const auto lines =
          RenderDashboard(status, workers, {.width = width, .height = height, .colour = colour});
      EXPECT_LT(lines.size(), static_cast<size_t>(height));
      for (const std::string& line : lines) EXPECT_LT(Columns(line), static_cast<size_t>(width)) << line;
      EXPECT_THAT(lines.front(), HasSubstr("reef")) << width;
    }
  }
  const auto one = RenderDashboard(Training(), OneWorker("w0"), {.width = 80, .height = 24, .colour = false});
  EXPECT_THAT(absl::StrJoin(one, "\n"), AllOf(HasSubstr("~3m 05s left"), HasSubstr("lease"),
                                              HasSubstr("23/50"), HasSubstr("└──"), HasSubstr("tok/s")));
}

TEST(Dashboard, ShowsHowMuchOfTheDeviceTheModelUses) {
  v1::ListWorkersReply workers = OneWorker("w0");
  EXPECT_THAT(Render(Training(), workers), AllOf(HasSubstr("mfu"), Not(HasSubstr("%  0 B"))));
  v1::Progress& progress = *workers.mutable_workers(0)->mutable_progress();
  progress.set_tokens_per_second(1000);
  progress.set_model_flops_per_second(42e9);
  progress.set_peak_flops_per_second(100e9);
  EXPECT_THAT(Render(Training(), workers), HasSubstr("1.00k   42%"));
  EXPECT_THAT(absl::StrJoin(DescribeWorker(workers.workers(0)), "\n"),
              HasSubstr("42.0 % of the device's measured 100G FLOP/s"));
  progress.set_tokens_per_second(0);  // it waits
  EXPECT_THAT(Render(Training(), workers), Not(HasSubstr("42%")));
}

TEST(Dashboard, WhatIsNotKnownIsNotShownAsZero) {
  v1::GetStatusReply status = Training();
  status.mutable_rounds(11)->set_train_loss(0);  // a run with privacy
  status.set_live_trainers(0);
  status.set_tokens_per_second(0);
  status.set_eta_seconds(0);
  EXPECT_THAT(Render(status, OneWorker("w0")),
              AllOf(Not(HasSubstr("0.000")), HasSubstr("train loss not reported"),
                    HasSubstr("no worker trains"), Not(HasSubstr("computing"))));
  EXPECT_THAT(RenderLine(status), AllOf(HasSubstr("train loss not reported"), HasSubstr("no worker trains")));
  status.set_compute_utilisation(0.973);
  EXPECT_THAT(Render(status, OneWorker("w0")), HasSubstr("computing 97 %"));
}

TEST(Dashboard, TheAgeIsTheRunsNotTheCoordinators) {
  EXPECT_THAT(Render(Training(), OneWorker("w0")), HasSubstr("created 2h 01m ago"));
  v1::GetStatusReply finished = Training();
  finished.set_state(v1::RUN_STATE_FINISHED);
  EXPECT_THAT(Render(finished, OneWorker("w0")), HasSubstr("ended 2h 01m after its creation, done"));
  v1::GetStatusReply older = Training();
  older.clear_run_seconds();
  EXPECT_THAT(Render(older, OneWorker("w0")), HasSubstr("coordinator up for 2m 13s"));
}

TEST(Dashboard, AnEmptyRunIsNoCrash) {
  EXPECT_THAT(Render({}, {}), AllOf(HasSubstr("not evaluated yet"), Not(HasSubstr("fewer"))));
}

TEST(Dashboard, AHostileNameCannotReachTheTerminal) {
  const std::string text = Render(Training(), OneWorker("w\x1b[2Jx"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Dashboard, StaysWithinItsHeight) {
  v1::ListWorkersReply workers;
  for (int i = 0; i < 8; ++i) *workers.add_workers() = OneWorker("w").workers(0);
  EXPECT_LE(RenderDashboard(Training(), workers, {.width = 100, .height = 30, .colour = false}).size(), 30u);
}

TEST(Dashboard, ShowsWhoIsRejectedAtJoin) {
  v1::GetStatusReply status = Training();
  for (int i = 0; i < 6; ++i) {
    auto* rejected = status.add_refused_joins();
    rejected->set_worker(i == 0 ? "w2" : "x" + std::to_string(i));
    rejected->set_address("10.0.0.2");
    rejected->set_message("all 2 parts of the shared data are in use\x1b[2J");
    rejected->set_since_s(65);
    rejected->set_attempts(i == 1 ? 1 : 9);
  }
  const std::string screen = absl::StrJoin(RenderStatus(status, {.colour = false}), "\n");
  EXPECT_THAT(screen, HasSubstr("rejected: worker 'x1' (10.0.0.2), once, 1m 05s ago: all 2 parts"));
  EXPECT_THAT(screen, HasSubstr("rejected: worker 'w2' (10.0.0.2), 9 times within 1m 05s: all 2 parts"));
  EXPECT_THAT(screen, HasSubstr("all 2 parts of the shared data are in use"));
  EXPECT_THAT(screen, HasSubstr("and 2 more workers are rejected"));
  EXPECT_THAT(screen, Not(HasSubstr("\x1b[2J")));
}

TEST(Dashboard, ShowsHowManyRejectedJoinsTheListHasNoRoomFor) {
  v1::GetStatusReply status = Training();
  const auto screen = [&] { return absl::StrJoin(RenderStatus(status, {.colour = false}), "\n"); };
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      auto* rejected = status.add_refused_joins();
      rejected->set_worker("x");
      rejected->set_attempts(2);
    }
  };
  add(63);
  status.set_joins_refused(400);
  EXPECT_THAT(screen(), Not(HasSubstr("joins were rejected"))) << "they have joined since, or stopped";
  add(65);
  EXPECT_THAT(screen(), AllOf(HasSubstr("and 124 more workers are rejected"),
                              HasSubstr("and 144 more joins were rejected since the coordinator's start")));
  status.set_joins_refused(256);
  EXPECT_THAT(screen(), Not(HasSubstr("rejected since the coordinator"))) << "each is listed";
}

TEST(Dashboard, ShowsWhatAnOperatorDid) {
  v1::GetStatusReply status = Training();
  status.set_state(v1::RUN_STATE_PAUSED);
  status.set_state_reason("alice: power");
  status.add_waiting()->set_what("fragment 0: waiting for w2, w3 (2 of 4 arrived)");
  status.mutable_waiting(0)->add_from("w2");
  auto* wait = status.add_waiting();
  wait->set_what("draining workers");
  wait->add_from("w1");
  wait->set_since_s(3);
  wait->set_ends_in_s(12);
  v1::ListWorkersReply workers = OneWorker("w0");
  workers.mutable_workers(0)->set_pending_command(v1::COMMAND_RESTART);
  EXPECT_THAT(Render(status, workers),
              AllOf(HasSubstr("paused: alice: power"), HasSubstr("ago, paused"),
                    HasSubstr(" waiting for w2, w3 (2 of 4 arrived)\n"),
                    HasSubstr(" waiting for draining workers: w1, for 3.0 s, at most 12"),
                    Not(HasSubstr("9m 50s")), HasSubstr("told to restart")));
}

TEST(Dashboard, APausedRunSaysItOnce) {
  v1::GetStatusReply status = Training();
  status.set_state(v1::RUN_STATE_PAUSED);
  status.set_state_reason("paused by alice: power");
  status.add_waiting()->set_what("fragment 0: paused by alice: power; 1 contribution is kept");
  status.mutable_waiting(0)->set_since_s(9.2);
  const std::string screen = absl::StrJoin(RenderStatus(status, {.colour = false}), "\n");
  EXPECT_THAT(screen, HasSubstr("\n paused\n"));
  EXPECT_THAT(screen, HasSubstr("\n paused by alice: power; 1 contribution is kept, for 9.2 s"));
}

TEST(Dashboard, NamesDrainingWorkers) {
  v1::GetStatusReply status = Training();
  status.add_waiting()->set_what("fragment 0: waiting for w2");
  status.mutable_waiting(0)->add_from("w2");
  auto* wait = status.add_waiting();
  wait->set_what("draining workers: they finish the round and leave");
  wait->add_from("w0");
  wait->add_from("w1");
  const std::string named = " waiting for draining workers (w0, w1): they finish the round and leave";
  EXPECT_THAT(absl::StrJoin(RenderStatus(status, {.colour = false}), "\n"), HasSubstr("\n" + named));
  EXPECT_THAT(RenderLine(status), testing::EndsWith("waiting for w2, w3 (2 of 4 arrived);" + named));
}

TEST(Dashboard, ADepartedWorkerDoesNothing) {
  v1::ListWorkersReply workers = OneWorker("w0");
  workers.mutable_workers(0)->set_state("left");
  const std::string table = absl::StrJoin(RenderWorkers(workers, {.width = 150, .colour = false}), "\n");
  EXPECT_THAT(table, AllOf(HasSubstr("left     -           -  "), Not(HasSubstr("training"))));
  workers.mutable_workers(0)->set_state("draining");
  EXPECT_THAT(absl::StrJoin(RenderWorkers(workers, {.width = 150, .colour = false}), "\n"),
              HasSubstr("draining training    23/50"));
  workers.mutable_workers(0)->clear_progress();
  EXPECT_THAT(absl::StrJoin(RenderWorkers(workers, {.width = 150, .colour = false}), "\n"),
              HasSubstr("draining -           -  "));
}

TEST(Dashboard, OneEvaluationIsNoProgress) {
  v1::GetStatusReply status = Training();
  status.mutable_evaluations()->DeleteSubrange(1, 1);
  EXPECT_THAT(absl::StrJoin(RenderSummary(status, {.colour = false}), "\n"),
              AllOf(HasSubstr("validation loss  5.545"), Not(HasSubstr("->"))));
}

TEST(Dashboard, ShowsWhoIsSuspectAndWhatPrivacyIsSpent) {
  v1::GetStatusReply status = Training();
  EXPECT_THAT(Render(status, OneWorker("w0")), Not(HasSubstr("privacy")));
  status.mutable_privacy()->set_clip_norm(2);
  EXPECT_THAT(Render(status, OneWorker("w0")), HasSubstr(" privacy clip norm 2, no noise: no epsilon\n"));
  status.mutable_privacy()->set_noise_multiplier(4);
  status.mutable_privacy()->set_delta(1e-5);
  status.mutable_privacy()->set_epsilon(1.25);
  status.mutable_privacy()->set_published_epsilon(0.5);
  v1::ListWorkersReply workers = OneWorker("w0");
  v1::OffenceStatus* offences = workers.mutable_workers(0)->mutable_offences();
  offences->set_recent(2);
  offences->set_rounds(7);
  offences->set_kinds("norm, direction");
  EXPECT_THAT(
      Render(status, workers),
      AllOf(HasSubstr("epsilon 1.25 for readers of pushes, 0.5 for readers of versions, at delta 1e-05"),
            HasSubstr("suspect in 2 of 7 rounds (norm, direction)")));
}

TEST(Dashboard, CountsOneThing) {
  v1::GetStatusReply status = Training();
  EXPECT_THAT(RenderLine(status), HasSubstr(", 1 worker, "));
  for (int i = 0; i < 5; ++i) status.add_refused_joins()->set_worker("x");
  EXPECT_THAT(absl::StrJoin(RenderStatus(status, {.colour = false}), "\n"),
              HasSubstr("and 1 more worker is rejected"));
}

TEST(Dashboard, OneLineForLogs) {
  EXPECT_EQ(RenderLine(Training()),
            "training: version 12, 300 of 1.00k tokens, train loss 2.600 at version 12, validation loss "
            "2.500 at version 12, "
            "1 worker, 11.2k tok/s, ~3m 05s left; waiting for w2, w3 (2 of 4 arrived)");
}

TEST(Dashboard, TheLineNamesFragmentsAndEveryWaitOfARunWithoutParameters) {
  v1::GetStatusReply status = Training();
  auto* second = status.add_fragments();
  second->set_id(1);
  second->set_waiting_for("0 of 4 contributions");
  EXPECT_THAT(RenderLine(status),
              HasSubstr("; fragment 0: waiting for w2, w3 (2 of 4 arrived); fragment 1: 0 of 4"));
  status.clear_fragments();
  status.add_waiting()->set_what("waiting for worker 'w1' to seed the parameters");
  status.add_waiting()->set_what("the disk (seed): it is full");
  EXPECT_THAT(RenderLine(status),
              HasSubstr("; waiting for worker 'w1' to seed the parameters; waiting for the disk (seed)"));
}

TEST(Dashboard, SummaryComparesStartAndEnd) {
  const std::string text = absl::StrJoin(RenderSummary(Training(), {.colour = false}), "\n");
  EXPECT_THAT(text, AllOf(HasSubstr("5.545 (perplexity 255.95) at version 0"),
                          HasSubstr("2.500 (perplexity 12.18) at version 12")));
}

TEST(TrafficRatio, CountsBothDirections) {
  v1::Traffic traffic;
  EXPECT_EQ(TrafficRatio(traffic), "-");
  traffic.set_push_bytes(10);
  traffic.set_pull_bytes(10);
  traffic.set_data_parallel_bytes(62);
  EXPECT_EQ(TrafficRatio(traffic), "3.1x");
}

}  // namespace
}  // namespace atl
