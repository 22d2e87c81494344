// What is kept of a run for the page, from a real coordinator.
#include "server/web/run_history.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/web/web_run.h"

namespace atl {
namespace {

TEST(RunHistoryTest, HasThePastAndFollows) {
  WebRun run;
  for (int i = 0; i < 3; ++i) run.Round();
  RunHistory history(&run.coordinator(), &run.run().clock());
  const auto newest = [&] {
    const auto events = history.Events(0, 1);
    return events.empty() ? 0 : events[0].sequence;
  };
  const auto caught_up = [&] { return newest() == run.coordinator().GetStatus(0).last_event_sequence; };
  ASSERT_TRUE(Eventually(caught_up));
  EXPECT_EQ(history.Events(0, 1000)[0].sequence, 1u);
  history.Follow();
  auto curve = nlohmann::json::parse(history.Curve(run.coordinator().GetStatus(100).evaluations));
  EXPECT_EQ(curve["version"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(curve["workers"].size(), 2u);
  EXPECT_EQ(curve["workers"][1]["loss"][0], 5.25);
  EXPECT_EQ(curve["validation"]["loss"].size(), 3u);

  run.Round();
  ASSERT_TRUE(Eventually([&] { return run.coordinator().GetStatus(0).fragments[0].version == Version(4); }));
  ASSERT_TRUE(Eventually([&] {
    history.Follow();
    return nlohmann::json::parse(history.Curve({}))["version"].size() == 4;
  }));
  ASSERT_GE(history.Milestones().size(), 3u);
  EXPECT_EQ(history.Milestones()[1].worker, "w0");
}

TEST(RunHistoryTest, FollowsARestore) {
  WebRun run;
  for (int i = 0; i < 2; ++i) run.Round();
  ASSERT_TRUE(run.Checkpoint("two").ok());
  for (int i = 0; i < 2; ++i) run.Round();
  RunHistory history(&run.coordinator(), &run.run().clock());
  nlohmann::json curve;
  const auto follow_to = [&](const auto& reached) {
    return Eventually([&] {
      history.Follow();
      curve = nlohmann::json::parse(history.Curve({}));
      return reached();
    });
  };
  ASSERT_TRUE(follow_to([&] { return curve["version"].size() == 4; }));
  ASSERT_TRUE(run.Restore("two").ok());
  ASSERT_TRUE(follow_to([&] { return !curve["restores"].empty(); })) << "before the next round is closed";
  run.Round();
  ASSERT_TRUE(follow_to([&] { return curve["version"].size() == 5; }));
  EXPECT_EQ(curve["restores"][0]["version"], 5);
  EXPECT_EQ(curve["restores"][0]["tokens"], curve["tokens"][1]);
  EXPECT_EQ(curve["epoch"], nlohmann::json({0, 0, 0, 0, 1}));
  EXPECT_EQ(curve["abandoned"], nlohmann::json({false, false, true, true, false}));
}

TEST(RunHistoryTest, TrafficIsSampledAtItsPeriod) {
  WebRun run;
  RunHistory history(&run.coordinator(), &run.run().clock());
  for (int i = 0; i < 10; ++i) {
    run.run().clock().Advance(Seconds(1));
    history.Follow();
  }
  EXPECT_EQ(history.Traffic().size(), 2u);
  run.Round();
  run.run().clock().Advance(RunHistory::kTrafficPeriod);
  history.Follow();
  ASSERT_EQ(history.Traffic().size(), 3u);
  EXPECT_GT(history.Traffic()[2].push_bytes, history.Traffic()[1].push_bytes);
}

}  // namespace
}  // namespace atl
