// The streams' reactors against everything that may happen at the same moment. Run under ThreadSanitizer.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "atoll/v1/coordinator.pb.h"
#include "common/crc32c.h"
#include "gtest/gtest.h"
#include "protos/wire/chunk_message.h"
#include "server/rpc/pull_stream.h"
#include "server/rpc/push_stream.h"
#include "server/rpc/watch_stream.h"
#include "tests/common/fake_clock.h"
#include "tests/fakes/fake_coordinator.h"
#include "tests/server/rpc/fake_call.h"

namespace atl {
namespace {

constexpr int kRuns = 300;

/// What a server has around its calls.
struct Surroundings {
  FakeClock clock;
  FakeCoordinator coordinator;
  IoPool calls{{.name = "calls", .threads = 2, .max_queued = 100}};
  IoPool uploads{{.name = "uploads", .threads = 2, .max_queued = 100}};
  IoPool syncs{{.name = "syncs", .threads = 2, .max_queued = 100}};
  FragmentHeads heads;
  LiveStreams streams{&clock, Seconds(3600), 100};  // looked at by the test

  CallContext Call() {
    CallContext call;
    call.coordinator = &coordinator;
    call.clock = &clock;
    call.calls = &calls;
    call.uploads = &uploads;
    call.syncs = &syncs;
    call.streams = &streams;
    call.heads = &heads;
    return call;
  }
};

void AtTheSameTime(const std::vector<std::function<void()>>& actions) {
  std::atomic<size_t> ready{0};
  std::vector<std::thread> threads;
  for (const auto& action : actions) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < actions.size()) std::this_thread::yield();
      action();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

SnapshotPtr SmallSnapshot(uint64_t version) {
  static const std::string bytes(3 * kWireChunkBytes / 2, 'x');
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->version = Version(version);
  snapshot->payload = std::as_bytes(std::span(bytes));
  snapshot->chunk_crc32c = {1, 2};
  return snapshot;
}

v1::WorkerRef Self() {
  v1::WorkerRef self;
  self.set_worker("w1");
  return self;
}

TEST(StreamRaceTest, AnAnswerMeetsACancelledPull) {
  Surroundings around;
  for (int run = 0; run < kRuns; ++run) {
    grpc::CallbackServerContext context;
    FakeWriter<grpc::ByteBuffer> call;
    v1::PullRequest request;
    *request.mutable_worker() = Self();
    const grpc::ByteBuffer asked = MessageToBytes(request);
    call.Bind(StartPullStream(around.Call(), &context, &asked));
    // In every other run the answer also races with the question.
    while (run % 2 == 0 && around.coordinator.waiting_pulls() == 0) std::this_thread::yield();
    PullResult answer;
    answer.outcome = PullOutcome::kParameters;
    answer.snapshot = SmallSnapshot(1);
    AtTheSameTime({[&] { around.coordinator.AnswerPulls(answer); }, [&] { call.Cancel(); },
                   [&] { around.streams.CheckAll(); }, [&] { around.heads.Saw(FragmentId(0), Version(1)); }});
    const grpc::Status status = call.WaitUntilDone();
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::CANCELLED) << status.error_message();
    if (status.ok()) {
      EXPECT_EQ(call.written().size(), 3u);
    }
  }
  around.calls.Stop();
  EXPECT_EQ(around.coordinator.waiting_pulls(), 0u);
  EXPECT_EQ(around.streams.size(), 0u);
}

TEST(StreamRaceTest, EventsMeetTheEndOfAWatch) {
  Surroundings around;
  for (int run = 0; run < kRuns; ++run) {
    grpc::CallbackServerContext context;
    FakeWriter<v1::RunEvent> call;
    const v1::WatchRunRequest request;
    call.Bind(StartWatchStream(around.Call(), &context, &request));
    std::atomic<uint64_t> sequence{0};
    const auto publish = [&] {
      for (int i = 0; i < 5; ++i) {
        EventView event;
        event.sequence = ++sequence;
        around.coordinator.Publish(event);
      }
    };
    AtTheSameTime({publish, [&] { around.streams.CheckAll(); }, [&] { call.Cancel(); }});
    EXPECT_EQ(call.WaitUntilDone().error_code(), grpc::StatusCode::CANCELLED);
    uint64_t last = 0;
    for (const v1::RunEvent& event : call.written()) {
      EXPECT_GT(event.sequence(), last);
      last = event.sequence();
    }
  }
  around.calls.Stop();
  EXPECT_EQ(around.coordinator.subscriptions(), 0u);
}

TEST(StreamRaceTest, ShutdownMeetsAWatch) {
  for (int run = 0; run < kRuns / 10; ++run) {
    Surroundings around;
    grpc::CallbackServerContext context;
    FakeWriter<v1::RunEvent> call;
    const v1::WatchRunRequest request;
    call.Bind(StartWatchStream(around.Call(), &context, &request));
    AtTheSameTime({[&] { around.streams.Shutdown(); }, [&] { call.Cancel(); },
                   [&] { around.coordinator.Publish(EventView()); }});
    EXPECT_FALSE(call.WaitUntilDone().ok());
    around.calls.Stop();
    EXPECT_EQ(around.coordinator.subscriptions(), 0u);
  }
}

TEST(StreamRaceTest, TheWatchdogMeetsAPushThatMoves) {
  Surroundings around;
  v1::PushChunk header;
  *header.mutable_header()->mutable_worker() = Self();
  header.mutable_header()->set_codec(v1::CODEC_FP32);
  header.mutable_header()->set_payload_bytes(100);
  std::vector<grpc::ByteBuffer> messages = {MessageToBytes(header)};
  for (uint64_t i = 0; i < 20; ++i) {
    v1::PushChunk message;
    message.set_offset(i);
    message.set_data("x");
    message.set_crc32c(Crc32c("x"));
    messages.push_back(MessageToBytes(message));
  }
  for (int run = 0; run < kRuns; ++run) {
    grpc::CallbackServerContext context;
    FakeReader<grpc::ByteBuffer> call(messages);  // 20 bytes of 100, then nothing
    grpc::ByteBuffer reply;
    call.Bind(StartPushStream(around.Call(), &context, &reply));
    std::atomic<bool> done{false};
    std::thread watchdog([&] {
      // Time runs, so that any read that waits is a stalled one.
      while (!done) {
        around.clock.Advance(Seconds(run % 2 == 0 ? 61 : 1));
        around.streams.CheckAll();
      }
    });
    EXPECT_EQ(call.WaitUntilDone().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    done = true;
    watchdog.join();
  }
  around.uploads.Stop();
  EXPECT_EQ(around.coordinator.open_pushes, 0);
  EXPECT_EQ(around.streams.size(), 0u);
}

}  // namespace
}  // namespace atl
