// Server streams: Pull and WatchRun over a socket.
#include <future>

#include "gmock/gmock.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atoll {
namespace {

using ::testing::HasSubstr;

SnapshotPtr SnapshotOf(uint64_t version, const std::string& bytes) {
  auto snapshot = std::make_shared<Snapshot>();
  const auto owner = std::make_shared<const std::string>(bytes);
  snapshot->epoch = Epoch(5);
  snapshot->version = Version(version);
  snapshot->elements = bytes.size() / 4;
  snapshot->published = {.low = 11, .high = 22};
  snapshot->payload = std::as_bytes(std::span(*owner));
  snapshot->owner = owner;
  for (size_t at = 0; at < bytes.size(); at += kWireChunkBytes) {
    snapshot->chunk_crc32c.push_back(Crc32c(std::string_view(*owner).substr(at, kWireChunkBytes)));
  }
  return snapshot;
}

PullResult ParametersOf(SnapshotPtr snapshot) {
  PullResult result;
  result.outcome = PullOutcome::kParameters;
  result.snapshot = std::move(snapshot);
  result.plan.inner_steps = 50;
  return result;
}

class PullTest : public RpcFixture {
 protected:
  static v1::PullRequest Request() {
    v1::PullRequest request;
    *request.mutable_worker() = Self();
    request.set_wait_ms(60'000);
    return request;
  }

  /// Names a head, as every heartbeat does.
  void SayHead(uint64_t version) {
    v1::HeartbeatRequest request;
    *request.mutable_worker() = Self();
    v1::HeartbeatReply reply;
    head_ = version;
    ASSERT_TRUE(data_->Heartbeat(Context().get(), request, &reply).ok());
  }

  void SetUp() override {
    coordinator_.on_heartbeat = [this](const HeartbeatCall&) -> absl::StatusOr<HeartbeatResult> {
      HeartbeatResult result;
      result.fragments = {{FragmentId(0), Version(head_), 256}};
      return result;
    };
  }

  std::atomic<uint64_t> head_{0};
};

TEST_F(PullTest, StreamsTheSnapshotInCheckedChunks) {
  std::string payload(2 * kWireChunkBytes + 100, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 2654435761u >> 11);
  coordinator_.on_pull = [&](const PullCall& call) -> absl::StatusOr<PullResult> {
    EXPECT_EQ(call.after, Version(3));
    EXPECT_EQ(call.wait, Seconds(60));
    return ParametersOf(SnapshotOf(4, payload));
  };
  std::promise<double> streamed;
  RpcServerOptions options = Options();
  options.on_pull_streamed = [&](double seconds) { streamed.set_value(seconds); };
  Serve(options);
  v1::PullRequest request = Request();
  request.set_after_version(3);
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), request);
  v1::PullChunk message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.header().outcome(), v1::PullHeader::PARAMETERS);
  EXPECT_EQ(message.header().version(), 4u);
  EXPECT_EQ(message.header().payload_bytes(), payload.size());
  EXPECT_EQ(message.header().plan().inner_steps(), 50u);
  EXPECT_EQ(message.header().published().low(), 11u);
  EXPECT_TRUE(message.data().empty());
  std::string received;
  while (reader->Read(&message)) {
    EXPECT_FALSE(message.has_header());
    EXPECT_EQ(message.offset(), received.size());
    EXPECT_LE(message.data().size(), kWireChunkBytes);
    EXPECT_EQ(message.crc32c(), Crc32c(message.data()));
    received += message.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(received == payload);  // not printed: megabytes
  EXPECT_GE(streamed.get_future().get(), 0);
  EXPECT_TRUE(Eventually([&] { return coordinator_.pulled_bytes > payload.size(); }));
}

TEST_F(PullTest, WaitsForTheCoordinatorAndPassesOnThatThereIsNothingYet) {
  Serve();
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), Request());
  ASSERT_TRUE(Eventually([&] { return coordinator_.waiting_pulls() == 1; }));
  PullResult nothing;
  nothing.waiting_for = "two workers";
  coordinator_.AnswerPulls(nothing);
  v1::PullChunk message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_EQ(message.header().outcome(), v1::PullHeader::NOT_YET);
  EXPECT_EQ(message.header().waiting_for(), "two workers");
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(PullTest, ACallerThatGoesAwayIsForgotten) {
  Serve();
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), Request());
  ASSERT_TRUE(Eventually([&] { return coordinator_.waiting_pulls() == 1; }));
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return coordinator_.waiting_pulls() == 0; }));
}

TEST_F(PullTest, TooLongAWaitIsRefused) {
  Serve();
  v1::PullRequest request = Request();
  request.set_wait_ms(60'001);
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), request);
  v1::PullChunk message;
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_THAT(reader->Finish().error_message(), HasSubstr("wait_ms"));
}

TEST_F(PullTest, ASnapshotMoreThanOneBehindTheHeadIsNotStreamedToItsEnd) {
  const SnapshotPtr old = SnapshotOf(3, std::string(64 * kWireChunkBytes, 'x'));
  coordinator_.on_pull = [&](const PullCall&) -> absl::StatusOr<PullResult> { return ParametersOf(old); };
  Serve();
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), Request());
  v1::PullChunk message;
  ASSERT_TRUE(reader->Read(&message));
  SayHead(4);
  ASSERT_TRUE(reader->Read(&message));  // one behind: it goes on
  SayHead(5);
  size_t chunks = 1;
  while (reader->Read(&message)) ++chunks;
  EXPECT_LT(chunks, 64u);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("pull again"));
  EXPECT_TRUE(Eventually([&] { return old.use_count() == 1; }));  // ours
}

TEST_F(PullTest, AReaderThatStandsStillIsCutOff) {
  const SnapshotPtr snapshot = SnapshotOf(3, std::string(64 * kWireChunkBytes, 'x'));
  coordinator_.on_pull = [&](const PullCall&) -> absl::StatusOr<PullResult> {
    return ParametersOf(snapshot);
  };
  RpcServerOptions options = Options();
  options.stall_limit = Seconds(0.2);
  Serve(options);
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), Request());
  v1::PullChunk message;
  ASSERT_TRUE(reader->Read(&message));
  EXPECT_TRUE(Eventually([&] { return snapshot.use_count() == 1; }));  // the server let go of it
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(PullTest, AnOutdatedSnapshotIsFreedEvenWhenItsReaderStandsStill) {
  const SnapshotPtr old = SnapshotOf(3, std::string(64 * kWireChunkBytes, 'x'));
  coordinator_.on_pull = [&](const PullCall&) -> absl::StatusOr<PullResult> { return ParametersOf(old); };
  Serve();  // which would wait a minute for the reader
  const auto context = Context();
  const auto reader = data_->Pull(context.get(), Request());
  v1::PullChunk message;
  ASSERT_TRUE(reader->Read(&message));
  SayHead(5);
  EXPECT_TRUE(Eventually([&] { return old.use_count() == 1; }));
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::ABORTED);
}

class WatchTest : public RpcFixture {
 protected:
  static EventView EventOf(uint64_t sequence) {
    EventView event;
    event.sequence = sequence;
    event.kind = EventKind::kRoundClosed;
    event.message = "round";
    event.round.emplace();
    event.round->version = Version(sequence);
    return event;
  }
};

TEST_F(WatchTest, PassesOnThePastAndThePresentInOrder) {
  coordinator_.on_subscribe = [](uint64_t after, const Coordinator::EventSink& sink) {
    for (uint64_t sequence = after + 1; sequence <= 5; ++sequence) sink(EventOf(sequence));
  };
  Serve();
  v1::WatchRunRequest request;
  request.set_after_sequence(2);
  const auto context = Context();
  const auto reader = data_->WatchRun(context.get(), request);
  ASSERT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 1; }));
  coordinator_.Publish(EventOf(6));
  v1::RunEvent event;
  for (uint64_t sequence = 3; sequence <= 6; ++sequence) {
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_EQ(event.sequence(), sequence);
    EXPECT_EQ(event.kind(), v1::RunEvent::ROUND_CLOSED);
    EXPECT_EQ(event.round().version(), sequence);
  }
  context->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 0; }));
}

TEST_F(WatchTest, AWatcherThatFallsBehindGetsWhatIsQueuedAndWatchesAgain) {
  coordinator_.on_subscribe = [](uint64_t after, const Coordinator::EventSink& sink) {
    for (uint64_t sequence = after + 1; sequence <= 100'000; ++sequence) {
      if (!sink(EventOf(sequence))) return;
    }
  };
  RpcServerOptions options = Options();
  options.max_watch_backlog = 10;
  Serve(options);
  const auto context = Context();
  const auto reader = data_->WatchRun(context.get(), v1::WatchRunRequest());
  v1::RunEvent event;
  uint64_t last = 0;
  while (reader->Read(&event)) {
    ASSERT_EQ(event.sequence(), last + 1);
    last = event.sequence();
  }
  EXPECT_GE(last, 10u);
  EXPECT_LT(last, 100'000u);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::ABORTED);
}

}  // namespace
}  // namespace atoll
