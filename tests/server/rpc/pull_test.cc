// Server streams: Pull and WatchRun over a socket.
#include <future>

#include "common/block_compression.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
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

  /// The messages of a pull that succeeds, without its header.
  std::vector<v1::PullChunk> Chunks(const v1::PullRequest& request) {
    const auto context = Context();
    const auto reader = data_->Pull(context.get(), request);
    v1::PullChunk message;
    EXPECT_TRUE(reader->Read(&message) && message.has_header());
    std::vector<v1::PullChunk> chunks;
    while (reader->Read(&message)) chunks.push_back(message);
    EXPECT_TRUE(reader->Finish().ok());
    return chunks;
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
    coordinator_.on_heartbeat = [this](const HeartbeatCall&) -> absl::StatusOr<HeartbeatReply> {
      HeartbeatReply result;
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

/// Of a chunk, unpacked.
std::string DataOf(const v1::PullChunk& chunk) {
  if (chunk.compression() != v1::COMPRESSION_ZSTD) return chunk.data();
  std::string data(chunk.uncompressed_bytes(), '\0');
  EXPECT_LT(chunk.data().size(), data.size());
  EXPECT_TRUE(BlockDecompressor()
                  .Decompress(std::as_bytes(std::span(chunk.data())), std::as_writable_bytes(std::span(data)))
                  .ok());
  return data;
}

/// What arrives of a pull of these chunks, by a caller that unpacks; how many of them were packed.
std::string Unpacked(const std::vector<v1::PullChunk>& chunks, int* packed) {
  std::string whole;
  *packed = 0;
  for (const v1::PullChunk& chunk : chunks) {
    EXPECT_EQ(chunk.offset(), whole.size());
    *packed += chunk.compression() == v1::COMPRESSION_ZSTD;
    const std::string piece = DataOf(chunk);
    EXPECT_EQ(chunk.crc32c(), Crc32c(piece)) << "of what was packed";
    whole += piece;
  }
  return whole;
}

TEST_F(PullTest, ChunksArePackedForWhoeverUnpacksThemInRunsThatSaySo) {
  // The second chunk is noise, which no codec makes smaller.
  std::string payload(2 * kWireChunkBytes + 100, 'a');
  uint32_t noise = 1;
  for (size_t i = kWireChunkBytes; i < 2 * kWireChunkBytes; ++i) {
    noise = noise * 1664525u + 1013904223u;
    payload[i] = static_cast<char>(noise >> 24);
  }
  const SnapshotPtr snapshot = SnapshotOf(4, payload);
  std::atomic<bool> run_packs{true};
  coordinator_.on_pull = [&](const PullCall& call) -> absl::StatusOr<PullResult> {
    PullResult result = ParametersOf(snapshot);
    result.zstd = call.zstd && run_packs;
    return result;
  };
  Serve();
  const auto pull = [&](const std::vector<v1::Compression>& accepts) {
    v1::PullRequest request = Request();
    for (const v1::Compression one : accepts) request.add_accepts(one);
    return Chunks(request);
  };
  int packed = 0;
  for (int again = 0; again < 2; ++again) {
    const auto chunks = pull({static_cast<v1::Compression>(77), v1::COMPRESSION_ZSTD});
    ASSERT_EQ(chunks.size(), 3u);
    EXPECT_TRUE(Unpacked(chunks, &packed) == payload);
    EXPECT_EQ(packed, 2);
    EXPECT_EQ(chunks[1].compression(), v1::COMPRESSION_NONE);
  }
  for (const auto& accepts : std::vector<std::vector<v1::Compression>>{{}, {v1::COMPRESSION_NONE}}) {
    EXPECT_TRUE(Unpacked(pull(accepts), &packed) == payload);
    EXPECT_EQ(packed, 0) << "an old client reads none";
  }
  run_packs = false;
  EXPECT_TRUE(Unpacked(pull({v1::COMPRESSION_ZSTD}), &packed) == payload);
  EXPECT_EQ(packed, 0);
}

TEST_F(PullTest, PartsAreThoseOfTheVersionThatTheyAreAskedOf) {
  std::string payload(3 * kWireChunkBytes + 100, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 2654435761u >> 13);
  const SnapshotPtr snapshot = SnapshotOf(4, payload);
  coordinator_.on_pull = [&](const PullCall& call) -> absl::StatusOr<PullResult> {
    PullResult result = ParametersOf(snapshot);
    result.zstd = call.zstd;
    return result;
  };
  Serve();
  struct Answer {
    grpc::Status status;
    v1::PullHeader header;
    std::string data;
  };
  const auto pull = [&](uint64_t version, uint64_t first, uint64_t end, bool zstd, uint32_t parts = 0) {
    v1::PullRequest request = Request();
    request.set_parts(parts);
    request.mutable_range()->set_version(version);
    request.mutable_range()->set_first_byte(first);
    request.mutable_range()->set_end_byte(end);
    if (zstd) request.add_accepts(v1::COMPRESSION_ZSTD);
    const auto context = Context();
    const auto reader = data_->Pull(context.get(), request);
    Answer answer;
    v1::PullChunk message;
    if (reader->Read(&message)) answer.header = message.header();
    while (reader->Read(&message)) {
      EXPECT_EQ(message.offset(), answer.header.first_byte() + answer.data.size());
      answer.data += DataOf(message);
    }
    answer.status = reader->Finish();
    return answer;
  };
  const Answer rest = pull(4, 2 * kWireChunkBytes, 0, false);
  EXPECT_TRUE(rest.data == payload.substr(2 * kWireChunkBytes));
  EXPECT_EQ(rest.header.first_byte(), 2 * kWireChunkBytes);
  EXPECT_EQ(rest.header.end_byte(), payload.size());
  EXPECT_EQ(rest.header.payload_bytes(), payload.size()) << "of the whole";
  // Side by side, and packed.
  std::string whole;
  for (const uint64_t first : {uint64_t{0}, 2 * kWireChunkBytes}) {
    const Answer part = pull(4, first, first + 2 * kWireChunkBytes, true);
    EXPECT_TRUE(part.status.ok());
    whole += part.data;
  }
  EXPECT_TRUE(whole == payload);
  // The first of so many parts, of what is asked for.
  for (const auto& [first, parts, bytes] :
       std::vector<std::tuple<uint64_t, uint32_t, size_t>>{{0, 1, payload.size()},
                                                           {0, 2, 2 * kWireChunkBytes},
                                                           {0, 3, 2 * kWireChunkBytes},
                                                           {kWireChunkBytes, 3, kWireChunkBytes},
                                                           {3 * kWireChunkBytes, 2, 100},
                                                           {0, UINT32_MAX, kWireChunkBytes}}) {
    const Answer part = pull(4, first, 0, false, parts);
    EXPECT_TRUE(part.status.ok());
    EXPECT_EQ(part.header.first_byte(), first);
    EXPECT_EQ(part.header.end_byte(), first + bytes) << parts;
    EXPECT_TRUE(part.data == payload.substr(first, bytes));
  }
  const Answer of_another = pull(3, kWireChunkBytes, 0, false, 2);
  EXPECT_EQ(of_another.header.end_byte(), 2 * kWireChunkBytes) << "from the beginning";
  EXPECT_TRUE(of_another.data == payload.substr(0, 2 * kWireChunkBytes));
  const Answer other = pull(3, kWireChunkBytes, 0, false);
  EXPECT_TRUE(other.data == payload) << "version 3 is gone";
  EXPECT_EQ(other.header.end_byte(), 0u);
  for (const auto& [first, end] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 0}, {0, 77}, {2 * kWireChunkBytes, kWireChunkBytes}, {4 * kWireChunkBytes, 0}}) {
    const Answer rejected = pull(4, first, end, false);
    EXPECT_EQ(rejected.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << first;
    EXPECT_THAT(rejected.status.error_message(), HasSubstr("range"));
    EXPECT_TRUE(rejected.data.empty());
  }
}

TEST_F(PullTest, ManyWhoPullAtOnceSharePackedChunks) {
  std::string payload(8 * kWireChunkBytes, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 2654435761u >> 28);
  const SnapshotPtr snapshot = SnapshotOf(4, payload);
  coordinator_.on_pull = [&](const PullCall& call) -> absl::StatusOr<PullResult> {
    PullResult result = ParametersOf(snapshot);
    result.zstd = call.zstd;
    return result;
  };
  Serve();
  std::vector<std::future<std::string>> readers;
  for (int i = 0; i < 6; ++i) {
    readers.push_back(std::async(std::launch::async, [this] {
      v1::PullRequest request = Request();
      request.add_accepts(v1::COMPRESSION_ZSTD);
      int packed = 0;
      std::string whole = Unpacked(Chunks(request), &packed);
      EXPECT_EQ(packed, 8);
      return whole;
    }));
  }
  for (auto& reader : readers) EXPECT_TRUE(reader.get() == payload);
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

TEST_F(PullTest, TooLongAWaitIsRejected) {
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
}  // namespace atl
