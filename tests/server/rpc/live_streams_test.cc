#include "server/rpc/live_streams.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "server/rpc/fragment_heads.h"
#include "tests/common/fake_clock.h"

namespace atl {
namespace {

class Stream final : public LiveStream {
 public:
  void CheckProgress(MonoTime now) override { checked_at = now.time_since_epoch().count(); }
  void OnShutdown() override { ++shutdowns; }
  std::atomic<int64_t> checked_at{0};
  std::atomic<int> shutdowns{0};
};

TEST(LiveStreamsTest, LooksAtStreamsThatLiveAndForgetsTheOthers) {
  FakeClock clock;
  LiveStreams streams(&clock, Seconds(3600), 100);
  const auto stays = std::make_shared<Stream>();
  auto goes = std::make_shared<Stream>();
  streams.Add(stays);
  streams.Add(goes);
  EXPECT_EQ(streams.size(), 2u);
  goes.reset();
  clock.Advance(Seconds(1));
  streams.CheckAll();
  EXPECT_EQ(stays->checked_at, clock.Now().time_since_epoch().count());
  EXPECT_EQ(streams.size(), 1u);
}

TEST(LiveStreamsTest, TheThreadLooksByItself) {
  FakeClock clock;
  LiveStreams streams(&clock, Seconds(0.001), 100);
  const auto stream = std::make_shared<Stream>();
  streams.Add(stream);
  while (stream->checked_at == 0) std::this_thread::yield();
}

TEST(LiveStreamsTest, ShutdownReachesStreamsBeforeAndAfter) {
  FakeClock clock;
  LiveStreams streams(&clock, Seconds(3600), 100);
  const auto before = std::make_shared<Stream>();
  streams.Add(before);
  streams.Shutdown();
  EXPECT_EQ(before->shutdowns, 1);
  const auto after = std::make_shared<Stream>();
  streams.Add(after);
  EXPECT_EQ(after->shutdowns, 1);
}

TEST(FragmentHeadsTest, OneBehindIsFineTwoBehindIsOutdated) {
  FragmentHeads heads;
  EXPECT_FALSE(heads.Outdated(FragmentId(0), Version(0)));
  heads.Saw(FragmentId(0), Version(5));
  heads.Saw(FragmentId(0), Version(3));
  EXPECT_EQ(heads.Newest(FragmentId(0)), Version(5));
  EXPECT_FALSE(heads.Outdated(FragmentId(0), Version(5)));
  EXPECT_FALSE(heads.Outdated(FragmentId(0), Version(4)));
  EXPECT_TRUE(heads.Outdated(FragmentId(0), Version(3)));
  EXPECT_FALSE(heads.Outdated(FragmentId(1), Version(0)));
}

}  // namespace
}  // namespace atl
