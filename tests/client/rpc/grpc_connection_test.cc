#include "client/rpc/grpc_connection.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "client/rpc/channel.h"
#include "client/rpc/chunks.h"
#include "client/sync/rejection.h"
#include "common/block_compression.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "common/mutex.h"
#include "common/random.h"
#include "common/status_detail.h"
#include "core/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/wire/status.h"
#include "tests/client/rpc/scripted_service.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kElements = 700'000;  // 2.67 MiB: three chunks

class GrpcConnectionTest : public ::testing::Test {
 protected:
  GrpcConnectionTest() : payload_(kElements * sizeof(float)) {
    for (size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i * 31 % 251);
    Connect(Seconds(20));
  }

  void Connect(Duration stall, int range_channels = 0) {
    GrpcConnectionOptions options{.address = service_.address()};
    options.stall = stall;
    for (int i = 0; i < range_channels; ++i) {
      options.range_channels.push_back(MakeChannel({.address = service_.address()}));
    }
    connection_.emplace(options, MakeChannel({.address = service_.address()}), &clock_);
  }

  /// The header and the chunks of a faultless pull of payload_.
  std::vector<v1::PullChunk> GoodPull() const {
    std::vector<v1::PullChunk> messages(1);
    v1::PullHeader& header = *messages[0].mutable_header();
    header.set_outcome(v1::PullHeader::PARAMETERS);
    header.set_epoch(7);
    header.set_version(12);
    header.set_codec(v1::CODEC_FP32);
    header.set_elements(kElements);
    header.set_payload_bytes(payload_.size());
    const Hash128 hash = HashBytes(payload_);
    header.mutable_published()->set_low(hash.low);
    header.mutable_published()->set_high(hash.high);
    for (uint64_t offset = 0; offset < payload_.size();) {
      offset += FillChunk(payload_, offset, &messages.emplace_back());
    }
    return messages;
  }

  absl::StatusOr<PulledVersion> Pull(const std::vector<v1::PullChunk>& messages,
                                     grpc::Status end = grpc::Status::OK) {
    // By value: the service may still be sending when the client has seen enough.
    service_.on_pull = [messages, end](grpc::ServerContext*, const v1::PullRequest&, auto* writer) {
      for (const v1::PullChunk& message : messages) writer->Write(message);
      return end;
    };
    received_.assign(payload_.size(), std::byte{0});
    return connection_->Pull({}, {.call = {}, .elements = kElements}, received_);
  }

  absl::StatusOr<PushReceipt> Push(uint64_t from = 0) {
    return connection_->Push({"r", Epoch(7), "w", Incarnation(1)},
                             {.key = {FragmentId(0), Version(3), 0},
                              .payload_bytes = payload_.size(),
                              .payload_crc32c = Crc32c(payload_)},
                             payload_, from);
  }

  SystemClock clock_;
  ScriptedService service_;
  std::vector<std::byte> payload_;
  std::vector<std::byte> received_;
  std::optional<GrpcConnection> connection_;
};

TEST_F(GrpcConnectionTest, PullsInPlace) {
  const auto pulled = Pull(GoodPull());
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->outcome, PullOutcome::kParameters);
  EXPECT_EQ(pulled->version, Version(12));
  EXPECT_EQ(pulled->epoch, Epoch(7));
  EXPECT_EQ(received_, payload_);
  EXPECT_GT(pulled->wire_bytes, payload_.size());
  EXPECT_LT(pulled->wire_bytes, payload_.size() * 1.001);
}

TEST_F(GrpcConnectionTest, APullThatIsNotYetSaysWhatIsWaitedFor) {
  std::vector<v1::PullChunk> messages(1);
  messages[0].mutable_header()->set_outcome(v1::PullHeader::NOT_YET);
  messages[0].mutable_header()->set_waiting_for("worker-b");
  const auto pulled = Pull(messages);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->outcome, PullOutcome::kNotYet);
  EXPECT_EQ(pulled->waiting_for, "worker-b");
}

TEST_F(GrpcConnectionTest, DamageOnTheWayIsFound) {
  std::vector<v1::PullChunk> flipped = GoodPull();
  (*flipped[2].mutable_data())[17] ^= 1;
  const auto damaged = Pull(flipped);
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.status().message()), HasSubstr("offset 1048576 was damaged"));

  std::vector<v1::PullChunk> gap = GoodPull();
  gap.erase(gap.begin() + 2);
  EXPECT_EQ(Pull(gap).status().code(), absl::StatusCode::kDataLoss);

  std::vector<v1::PullChunk> long_one = GoodPull();
  long_one.push_back(long_one.back());
  EXPECT_EQ(Pull(long_one).status().code(), absl::StatusCode::kDataLoss);

  std::vector<v1::PullChunk> other_hash = GoodPull();
  other_hash[0].mutable_header()->mutable_published()->set_low(1);
  const auto other = Pull(other_hash);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("content hash"));
}

TEST_F(GrpcConnectionTest, APullThatBreaksOffCanBeTriedAgain) {
  std::vector<v1::PullChunk> messages = GoodPull();
  messages.pop_back();
  EXPECT_EQ(ReactionTo(Pull(messages).status()), Reaction::kRetry);
  EXPECT_EQ(ReactionTo(Pull(messages, {grpc::StatusCode::ABORTED, "outdated"}).status()), Reaction::kRetry);
}

TEST_F(GrpcConnectionTest, APullGoesOnWhereItBroke) {
  const std::vector<v1::PullChunk> messages = GoodPull();
  PullProgress progress;
  const PullRequest pull_request{.call = {}, .elements = kElements, .progress = &progress};
  std::vector<v1::PullRange> asked;
  uint64_t version = 12;
  service_.on_pull = [&](grpc::ServerContext*, const v1::PullRequest& request, auto* writer) {
    asked.push_back(request.range());
    v1::PullChunk header = messages[0];
    header.mutable_header()->set_version(version);
    const bool goes_on = request.has_range() && request.range().version() == version;
    if (goes_on) {
      header.mutable_header()->set_first_byte(request.range().first_byte());
      header.mutable_header()->set_end_byte(payload_.size());
    }
    writer->Write(header);
    const size_t first = goes_on ? 1 + request.range().first_byte() / kChunkBytes : 1;
    writer->Write(messages[first]);
    if (first < 3) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the line broke");
    return grpc::Status::OK;
  };
  received_.assign(payload_.size(), std::byte{0});
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(ReactionTo(connection_->Pull({}, pull_request, received_).status()), Reaction::kRetry);
  }
  const auto pulled = connection_->Pull({}, pull_request, received_);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(received_, payload_);
  ASSERT_EQ(asked.size(), 3u);
  for (uint64_t attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(asked[attempt].first_byte(), attempt * kChunkBytes);
  EXPECT_TRUE(progress.blocks.empty());

  // What was kept is of another version than the one that is there by now: all of it comes.
  EXPECT_FALSE(connection_->Pull({}, pull_request, received_).ok());
  EXPECT_EQ(progress.blocks.size(), 1u);
  version = 13;
  EXPECT_FALSE(connection_->Pull({}, pull_request, received_).ok());
  EXPECT_EQ(progress.version, Version(13));
  EXPECT_EQ(progress.blocks.size(), 1u);
}

class PullInPartsTest : public GrpcConnectionTest {
 protected:
  PullInPartsTest() {
    Connect(Seconds(5), 2);
    messages_ = GoodPull();
    received_.assign(payload_.size(), std::byte{0});
    service_.on_pull = [this](grpc::ServerContext*, const v1::PullRequest& request, auto* writer) {
      return Serve(request, writer);
    };
  }

  absl::StatusOr<PulledVersion> PullAll() {
    return connection_->Pull({}, {.call = {}, .elements = kElements, .progress = &progress_}, received_);
  }

  void BreakAt(uint64_t offset) {
    const MutexLock lock(&mutex_);
    breaks_at_ = {offset};
  }
  std::vector<std::pair<uint64_t, uint64_t>> asked() {
    const MutexLock lock(&mutex_);
    return {asked_.begin(), asked_.end()};
  }
  void Replace(bool replaced) {
    const MutexLock lock(&mutex_);
    replaced_ = replaced;
  }

  /// As the coordinator does, a chunk for each part.
  template <typename Writer>
  grpc::Status Serve(const v1::PullRequest& request, Writer* writer) {
    const uint64_t first = request.range().first_byte();
    uint64_t end = request.range().end_byte() == 0 ? payload_.size() : request.range().end_byte();
    if (request.parts() > 1) end = std::min(end, first + kChunkBytes);
    v1::PullChunk header = messages_[0];
    header.mutable_header()->set_first_byte(first);
    header.mutable_header()->set_end_byte(end);
    {
      const MutexLock lock(&mutex_);
      asked_.insert({first, end});
      if (replaced_ && first > 0) header.mutable_header()->set_version(13);
    }
    writer->Write(header);
    for (uint64_t at = first; at < end; at += kChunkBytes) {
      {
        const MutexLock lock(&mutex_);
        if (breaks_at_.erase(at) > 0) return {grpc::StatusCode::UNAVAILABLE, "the line broke"};
      }
      writer->Write(messages_[1 + at / kChunkBytes]);
    }
    return grpc::Status::OK;
  }

  std::vector<v1::PullChunk> messages_;
  PullProgress progress_;
  Mutex mutex_;
  std::multiset<std::pair<uint64_t, uint64_t>> asked_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> breaks_at_ ABSL_GUARDED_BY(mutex_);
  bool replaced_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(PullInPartsTest, EachOverAConnectionOfItsOwn) {
  const auto pulled = PullAll();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(received_, payload_);
  EXPECT_GT(pulled->wire_bytes, payload_.size());
  using Range = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(asked(), ElementsAre(Range(0, kChunkBytes), Range(kChunkBytes, 2 * kChunkBytes),
                                   Range(2 * kChunkBytes, payload_.size())));
}

TEST_F(PullInPartsTest, ItGoesOnAtTheFirstGap) {
  for (const uint64_t broken : {uint64_t{0}, uint64_t{kChunkBytes}, uint64_t{2 * kChunkBytes}}) {
    received_.assign(payload_.size(), std::byte{0});
    BreakAt(broken);
    EXPECT_EQ(ReactionTo(PullAll().status()), Reaction::kRetry) << broken;
    EXPECT_EQ(progress_.blocks.size(), broken / kChunkBytes);
    {
      const MutexLock lock(&mutex_);
      asked_.clear();
    }
    const auto pulled = PullAll();
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(received_, payload_);
    EXPECT_EQ(asked().front().first, broken);
    EXPECT_TRUE(progress_.blocks.empty());
  }
}

TEST_F(PullInPartsTest, AVersionThatIsReplacedMeanwhileIsPulledAgain) {
  Replace(true);
  const absl::Status status = PullAll().status();
  EXPECT_EQ(ReactionTo(status), Reaction::kRetry);
  EXPECT_THAT(std::string(status.message()), HasSubstr("replaced"));
  Replace(false);
  EXPECT_TRUE(PullAll().ok());
  EXPECT_EQ(received_, payload_);
}

TEST_F(PullInPartsTest, ACoordinatorThatKnowsNoPartsSendsTheWhole) {
  EXPECT_TRUE(Pull(GoodPull()).ok());
  EXPECT_EQ(received_, payload_);
}

TEST_F(PullInPartsTest, AWrongByteInAnyPartIsFound) {
  for (size_t i = 1; i <= 3; ++i) {
    messages_ = GoodPull();
    messages_[i].mutable_data()->front() ^= 1;
    EXPECT_EQ(PullAll().status().code(), absl::StatusCode::kDataLoss) << i;
  }
  messages_ = GoodPull();
  messages_[0].mutable_header()->mutable_published()->set_low(1);
  progress_ = {};
  EXPECT_THAT(std::string(PullAll().status().message()), HasSubstr("content hash"));
  EXPECT_TRUE(progress_.blocks.empty());
}

TEST_F(GrpcConnectionTest, APartThatWasNotAskedForIsRejected) {
  for (const auto& [first, end] : std::vector<std::pair<uint64_t, uint64_t>>{
           {kChunkBytes, payload_.size()}, {0, kChunkBytes}, {~uint64_t{0} << 20, payload_.size()}}) {
    std::vector<v1::PullChunk> messages = GoodPull();
    messages[0].mutable_header()->set_first_byte(first);
    messages[0].mutable_header()->set_end_byte(end);
    EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kInvalidArgument) << first;
  }
}

TEST_F(GrpcConnectionTest, AnotherShapeIsRejected) {
  std::vector<v1::PullChunk> messages = GoodPull();
  messages[0].mutable_header()->set_elements(kElements + 1);
  EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kInvalidArgument);
  messages[0].mutable_header()->set_elements(kElements);
  messages[0].mutable_header()->set_payload_bytes(uint64_t{1} << 60);
  EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kInvalidArgument);
  messages[0].mutable_header()->set_codec(v1::CODEC_BF16);
  EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Pull({}).status().code(), absl::StatusCode::kInternal) << "no header at all";
}

TEST_F(GrpcConnectionTest, APullThatStandsStillIsGivenUp) {
  Connect(Seconds(0.3));
  service_.on_pull = [&](grpc::ServerContext* context, const v1::PullRequest&, auto* writer) {
    writer->Write(GoodPull()[0]);
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  received_.resize(payload_.size());
  const auto pulled = connection_->Pull({}, {.call = {}, .elements = kElements}, received_);
  EXPECT_EQ(pulled.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(pulled.status().message()), HasSubstr("stood still"));
}

TEST_F(GrpcConnectionTest, ASlowPullIsNotGivenUpWhileItMoves) {
  Connect(Seconds(1));
  service_.on_pull = [&](grpc::ServerContext*, const v1::PullRequest&, auto* writer) {
    for (const v1::PullChunk& message : GoodPull()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // four of them pass the limit together
      writer->Write(message);
    }
    return grpc::Status::OK;
  };
  received_.resize(payload_.size());
  const auto pulled = connection_->Pull({}, {.call = {}, .elements = kElements}, received_);
  EXPECT_TRUE(pulled.ok()) << pulled.status();
}

TEST_F(GrpcConnectionTest, CancelPullsEndsAWaitAndEveryLaterOne) {
  std::atomic<bool> waiting = false;
  service_.on_pull = [&](grpc::ServerContext* context, const v1::PullRequest&, auto*) {
    waiting = true;
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::thread stopper([&] {
    while (!waiting) std::this_thread::yield();
    connection_->CancelPulls();
  });
  const PullRequest pull_request{.call = {.wait = Seconds(30)}, .elements = kElements};
  received_.resize(payload_.size());
  EXPECT_EQ(connection_->Pull({}, pull_request, received_).status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(connection_->Pull({}, pull_request, received_).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcConnectionTest, EndPullsEndsAWaitButNoTransferAndNoLaterPull) {
  std::atomic<bool> waiting = false;
  service_.on_pull = [&](grpc::ServerContext* context, const v1::PullRequest&, auto*) {
    waiting = true;
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::thread other([&] {
    while (!waiting) std::this_thread::yield();
    connection_->EndPulls();
  });
  const PullRequest pull_request{.call = {.wait = Seconds(30)}, .elements = kElements};
  received_.resize(payload_.size());
  EXPECT_EQ(connection_->Pull({}, pull_request, received_).status().code(), absl::StatusCode::kCancelled);
  other.join();

  service_.on_pull = [&](grpc::ServerContext*, const v1::PullRequest&, auto* writer) {
    const std::vector<v1::PullChunk> messages = GoodPull();
    writer->Write(messages[0]);
    writer->Write(messages[1]);
    // The first chunk is in its place, so the header was read.
    while (std::atomic_ref(received_[1]).load() == std::byte{0}) std::this_thread::yield();
    connection_->EndPulls();
    writer->Write(messages[2]);
    writer->Write(messages[3]);
    return grpc::Status::OK;
  };
  Connect(Seconds(20));
  received_.assign(payload_.size(), std::byte{0});
  const auto pulled = connection_->Pull({}, pull_request, received_);
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(received_, payload_);
}

TEST_F(GrpcConnectionTest, PushesInCheckedChunks) {
  std::vector<uint64_t> offsets;
  std::vector<std::byte> arrived(payload_.size());
  v1::PushHeader header;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader,
                         v1::PushReply* reply) {
    v1::PushChunk chunk;
    reader->Read(&chunk);
    header = chunk.header();
    uint64_t next = 0;
    while (reader->Read(&chunk)) {
      offsets.push_back(chunk.offset());
      if (Crc32c(chunk.data()) != chunk.crc32c()) return grpc::Status(grpc::StatusCode::DATA_LOSS, "crc32c");
      std::memcpy(arrived.data() + chunk.offset(), chunk.data().data(), chunk.data().size());
      EXPECT_EQ(chunk.offset(), next);
      next += chunk.data().size();
    }
    reply->set_head_version(3);
    reply->set_arrived(1);
    reply->set_expected(2);
    return grpc::Status::OK;
  };
  const auto receipt = Push();
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(arrived, payload_);
  EXPECT_THAT(offsets, ElementsAre(0, 1 << 20, 2 << 20));
  EXPECT_EQ(header.payload_bytes(), payload_.size());
  EXPECT_EQ(header.payload_crc32c(), Crc32c(payload_));
  EXPECT_EQ(header.base_version(), 3u);
  EXPECT_EQ(header.worker().run_id(), "r");
  EXPECT_EQ(receipt->arrived, 1u);
  EXPECT_EQ(receipt->expected, 2u);
}

TEST_F(GrpcConnectionTest, PacksTheChunksThatGetSmallerByIt) {
  // The middle chunk is noise.
  SplitMixGenerator random(5);
  for (size_t i = 0; i < payload_.size(); ++i) {
    const bool noise = i >= kChunkBytes && i < 2 * kChunkBytes;
    payload_[i] = noise ? static_cast<std::byte>(random()) : static_cast<std::byte>(i % 3);
  }
  std::vector<v1::PushChunk> chunks;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader, v1::PushReply*) {
    v1::PushChunk chunk;
    reader->Read(&chunk);
    while (reader->Read(&chunk)) chunks.push_back(chunk);
    return grpc::Status::OK;
  };
  const auto receipt = connection_->Push(
      {}, {.key = {}, .payload_bytes = payload_.size(), .payload_crc32c = Crc32c(payload_), .zstd = true},
      payload_, 0);
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_LT(receipt->wire_bytes, payload_.size() / 2);
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[1].compression(), v1::COMPRESSION_NONE);
  EXPECT_EQ(chunks[1].data().size(), kChunkBytes);
  std::vector<std::byte> arrived(payload_.size());
  for (const size_t i : {0, 2}) {
    EXPECT_EQ(chunks[i].compression(), v1::COMPRESSION_ZSTD);
    const auto place = std::span(arrived).subspan(chunks[i].offset(), chunks[i].uncompressed_bytes());
    ASSERT_TRUE(BlockDecompressor().Decompress(std::as_bytes(std::span(chunks[i].data())), place).ok());
    EXPECT_EQ(Crc32c(place), chunks[i].crc32c());
    EXPECT_TRUE(std::ranges::equal(place, std::span(payload_).subspan(chunks[i].offset(), place.size())));
  }
}

TEST_F(GrpcConnectionTest, APulledChunkMayBePacked) {
  std::vector<v1::PullChunk> messages = GoodPull();
  std::string packed(kChunkBytes, '\0');
  packed.resize(BlockCompressor().Compress(std::span(payload_).first(kChunkBytes),
                                           std::as_writable_bytes(std::span(packed))));
  ASSERT_GT(packed.size(), 0u);
  messages[1].set_data(packed);
  messages[1].set_compression(v1::COMPRESSION_ZSTD);
  messages[1].set_uncompressed_bytes(kChunkBytes);
  const auto pulled = Pull(messages);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(received_, payload_);
  for (const uint32_t wrong : {0u, 1u, uint32_t{kChunkBytes} + 1, ~0u}) {
    messages[1].set_uncompressed_bytes(wrong);
    EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kDataLoss) << wrong;
  }
  messages[1].set_uncompressed_bytes(kChunkBytes);
  messages[1].set_compression(static_cast<v1::Compression>(77));
  EXPECT_EQ(Pull(messages).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(GrpcConnectionTest, ChunksOfAnySizeArePutTogether) {
  std::vector<v1::PullChunk> messages = {GoodPull()[0]};
  for (uint64_t offset = 0; offset < payload_.size();) {
    const auto piece =
        std::span(payload_).subspan(offset, std::min<size_t>(300'001, payload_.size() - offset));
    v1::PullChunk& message = messages.emplace_back();
    message.set_offset(offset);
    message.set_data(std::string(reinterpret_cast<const char*>(piece.data()), piece.size()));
    message.set_crc32c(Crc32c(piece));
    offset += piece.size();
  }
  const auto pulled = Pull(messages);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(received_, payload_);
}

TEST_F(GrpcConnectionTest, NothingReadsThePayloadOnceAPushHasEnded) {
  payload_.assign(32 << 20, std::byte{1});
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader, v1::PushReply*) {
    v1::PushChunk chunk;
    reader->Read(&chunk);  // and not the rest: the client still has it on its way
    return grpc::Status(grpc::StatusCode::ABORTED, "enough");
  };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Push().status().code(), absl::StatusCode::kAborted);
    // Under AddressSanitizer, or with luck, a transport that still sends from here is seen.
    std::vector<std::byte>(payload_.size(), std::byte{2}).swap(payload_);
  }
}

TEST_F(GrpcConnectionTest, AResumedPushSendsTheRest) {
  std::vector<uint64_t> offsets;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader, v1::PushReply*) {
    v1::PushChunk chunk;
    reader->Read(&chunk);
    while (reader->Read(&chunk)) offsets.push_back(chunk.offset());
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Push(1'500'000).ok());
  EXPECT_THAT(offsets, ElementsAre(1'500'000, 1'500'000 + (1 << 20)));
  offsets.clear();
  ASSERT_TRUE(Push(payload_.size()).ok()) << "nothing is missing but the answer";
  EXPECT_TRUE(offsets.empty());
}

TEST_F(GrpcConnectionTest, AnEarlyAnswerEndsThePush) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader,
                         v1::PushReply* reply) {
    v1::PushChunk chunk;
    reader->Read(&chunk);
    reply->set_duplicate(true);
    return grpc::Status::OK;
  };
  const auto receipt = Push();
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_TRUE(receipt->duplicate);
}

TEST_F(GrpcConnectionTest, ARejectionCarriesReasonAndDelay) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*) {
    return StatusToGrpc(WithDetail(absl::ResourceExhaustedError("no room"),
                                   {.reason = "OVER_BUDGET", .metadata = {}, .retry_after = Seconds(4)}));
  };
  const auto receipt = Push();
  EXPECT_EQ(receipt.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RejectionReasonOf(receipt.status()), RejectionReason::kOverBudget);
  EXPECT_EQ(RetryDelayOf(receipt.status()), Seconds(4));
}

TEST_F(GrpcConnectionTest, APushThatNobodyReadsIsGivenUp) {
  Connect(Seconds(0.3));
  payload_.resize(64 << 20);  // more than flow control lets into the buffers
  service_.on_push = [&](grpc::ServerContext* context, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*) {
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  const auto receipt = Push();
  EXPECT_EQ(receipt.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(receipt.status().message()), HasSubstr("stood still"));
}

TEST_F(GrpcConnectionTest, ASlowPushIsNotGivenUpWhileItMoves) {
  payload_.resize(40 << 20);
  Connect(Seconds(1.5));
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader, v1::PushReply*) {
    v1::PushChunk chunk;
    // 41 messages: together well above the limit, each far below it.
    while (reader->Read(&chunk)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return grpc::Status::OK;
  };
  const MonoTime begin = clock_.Now();
  const auto receipt = Push();
  EXPECT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_GT(clock_.Now() - begin, Seconds(1.5));
}

TEST_F(GrpcConnectionTest, CancelPushesEndsOneInProgressAndEveryLaterOne) {
  payload_.resize(64 << 20);
  Connect(Seconds(30));
  std::atomic<bool> begun = false;
  service_.on_push = [&](grpc::ServerContext* context, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*) {
    begun = true;
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::thread stopper([&] {
    while (!begun) std::this_thread::yield();
    connection_->CancelPushes();
  });
  EXPECT_EQ(Push().status().code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(Push().status().code(), absl::StatusCode::kCancelled);
}

// A coordinator that takes calls and answers none, as a stopped process does. Its side of a cancelled call
// may begin when the test has ended, so the scripts share what they use.
TEST_F(GrpcConnectionTest, CancelCallsEndsACallInProgressAndEveryLaterOne) {
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  const auto over = std::make_shared<std::atomic<bool>>(false);
  service_.on_heartbeat = [begun, over](const v1::HeartbeatRequest&, v1::HeartbeatReply*) {
    *begun = true;
    while (!*over) std::this_thread::yield();
    return grpc::Status::OK;
  };
  service_.on_join = [](const v1::JoinRequest&, v1::JoinReply*) { return grpc::Status::OK; };
  service_.on_leave = [](grpc::ServerContext*) { return grpc::Status::OK; };
  std::thread stopper([&] {
    while (!*begun) std::this_thread::yield();
    connection_->CancelCalls(Seconds(5));
  });
  const MonoTime begin = clock_.Now();
  EXPECT_EQ(connection_->Heartbeat({}, {}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(clock_.Now() - begin, Seconds(10)) << "not at its deadline";
  stopper.join();
  *over = true;
  EXPECT_EQ(connection_->Heartbeat({}, {}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(connection_->Join({}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(connection_->GetPushStatus({}, {}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(connection_->GetConfirmations({}, {}, Seconds(5)).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(connection_->Leave({}, "stopped").ok()) << "the goodbye is still said";
}

TEST_F(GrpcConnectionTest, AGoodbyeEndsInTheTimeThatIsLeft) {
  GrpcConnectionOptions options{.address = service_.address()};
  options.leave_deadline = Seconds(300);
  connection_.emplace(options, MakeChannel({.address = service_.address()}), &clock_);
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  service_.on_leave = [begun](grpc::ServerContext* context) {
    *begun = true;
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::thread stopper([&] {
    while (!*begun) std::this_thread::yield();
    connection_->CancelCalls(Seconds(300));  // not shorter: it goes on
    connection_->CancelCalls(Seconds(0.2));
  });
  const MonoTime begin = clock_.Now();
  EXPECT_EQ(connection_->Leave({}, "stopped").code(), absl::StatusCode::kDeadlineExceeded);
  stopper.join();
  EXPECT_EQ(connection_->Leave({}, "stopped").code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(clock_.Now() - begin, Seconds(100));
}

// Otherwise the coordinator has a member that nobody can sign off.
TEST_F(GrpcConnectionTest, AJoinInProgressIsAnsweredWhenTheWorkerIsToldToStop) {
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto answers = std::make_shared<std::atomic<bool>>(false);
  service_.on_join = [begun, answers](const v1::JoinRequest&, v1::JoinReply*) {
    ++*begun;
    while (!*answers) std::this_thread::yield();
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "answered");
  };
  JoinCall member;
  member.manifest_hash = "hash";
  ASSERT_TRUE(member.BecomesMember());
  std::thread stopper([&] {
    while (*begun == 0) std::this_thread::yield();
    connection_->CancelCalls(Seconds(60));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    *answers = true;
  });
  EXPECT_EQ(connection_->Join(member).status().code(), absl::StatusCode::kAlreadyExists);
  stopper.join();
  EXPECT_EQ(connection_->Join(member).status().code(), absl::StatusCode::kCancelled) << "begins no more";
  EXPECT_EQ(*begun, 1);
}

TEST_F(GrpcConnectionTest, AJoinWithoutAnAnswerEndsInTheTimeOfAGoodbye) {
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  const auto over = std::make_shared<std::atomic<bool>>(false);
  service_.on_join = [begun, over](const v1::JoinRequest&, v1::JoinReply*) {
    *begun = true;
    while (!*over) std::this_thread::yield();
    return grpc::Status::OK;
  };
  JoinCall member;
  member.manifest_hash = "hash";
  std::thread stopper([&] {
    while (!*begun) std::this_thread::yield();
    connection_->CancelCalls(Seconds(0.2));
  });
  const MonoTime begin = clock_.Now();
  EXPECT_EQ(connection_->Join(member).status().code(), absl::StatusCode::kCancelled);
  EXPECT_LT(clock_.Now() - begin, Seconds(10)) << "not at its deadline";
  stopper.join();
  *over = true;
}

// The worker's thread may begin its goodbye before the thread that stops it has said how long it may take.
TEST_F(GrpcConnectionTest, AGoodbyeThatHasJustBegunIsSaidWhenItsTimeBecomesShorter) {
  GrpcConnectionOptions options{.address = service_.address()};
  options.leave_deadline = Seconds(300);
  connection_.emplace(options, MakeChannel({.address = service_.address()}), &clock_);
  const auto times = std::make_shared<std::atomic<int>>(0);
  service_.on_leave = [times](grpc::ServerContext* context) {
    if (++*times > 1) return grpc::Status::OK;
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  };
  std::thread stopper([&] {
    while (*times == 0) std::this_thread::yield();
    connection_->CancelCalls(Seconds(60));
  });
  EXPECT_TRUE(connection_->Leave({}, "stopped").ok());
  stopper.join();
}

TEST_F(GrpcConnectionTest, HeartbeatsArriveWhileALargeUploadCrawls) {
  payload_.resize(48 << 20);
  Connect(Seconds(30));
  std::atomic<bool> done = false;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>* reader, v1::PushReply*) {
    v1::PushChunk chunk;
    while (!done && reader->Read(&chunk)) std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return grpc::Status(grpc::StatusCode::ABORTED, "the test has seen enough");
  };
  service_.on_heartbeat = [](const v1::HeartbeatRequest&, v1::HeartbeatReply*) { return grpc::Status::OK; };
  // As in worker/app: a channel of its own.
  GrpcConnection control({.address = service_.address()}, MakeChannel({.address = service_.address()}),
                         &clock_);
  std::thread upload([&] { EXPECT_FALSE(Push().ok()); });
  Duration slowest{};
  for (int i = 0; i < 20; ++i) {
    const MonoTime begin = clock_.Now();
    EXPECT_TRUE(control.Heartbeat({"r", Epoch(7), "w", Incarnation(1)}, {}).ok());
    slowest = std::max(slowest, clock_.Now() - begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  done = true;
  upload.join();
  EXPECT_LT(slowest, Seconds(1)) << "the upload has seconds of bytes queued before any heartbeat";
}

TEST_F(GrpcConnectionTest, SeedsFragmentByFragment) {
  std::vector<std::pair<uint32_t, uint64_t>> places;
  size_t tensors = 0;
  service_.on_seed = [&](grpc::ServerReader<v1::SeedChunk>* reader) {
    v1::SeedChunk chunk;
    reader->Read(&chunk);
    tensors = static_cast<size_t>(chunk.header().manifest().tensors_size());
    while (reader->Read(&chunk)) places.emplace_back(chunk.fragment(), chunk.offset());
    return grpc::Status::OK;
  };
  const std::vector<float> first(300'000, 1.0F);
  const std::vector<float> second(10, 2.0F);
  const Manifest manifest{{{.name = "a", .shape = {2}}, {.name = "b", .shape = {3}}}};
  const std::vector<SeedFragment> fragments = {{FragmentId(0), first}, {FragmentId(1), second}};
  ASSERT_TRUE(connection_->SeedParameters({}, manifest, fragments).ok());
  EXPECT_EQ(tensors, 2u);
  EXPECT_THAT(places, ElementsAre(std::pair(0u, 0u), std::pair(0u, 1u << 20), std::pair(1u, 0u)));
}

/// Tensors whose names take `bytes` each.
Manifest ManyTensors(size_t count, size_t bytes) {
  Manifest manifest;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    manifest.tensors.push_back({.name = std::string(bytes - number.size(), 'n') + number, .shape = {1}});
  }
  return manifest;
}

TEST_F(GrpcConnectionTest, JoinsByHashWhenTheManifestIsTooLong) {
  v1::JoinRequest heard;
  service_.on_join = [&](const v1::JoinRequest& request, v1::JoinReply*) {
    heard = request;
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "seen");
  };
  const auto join = [&](size_t tensors) {
    const Manifest manifest = ManyTensors(tensors, 100);
    (void)connection_->Join({.worker = "w",
                             .secret = std::string(32, 's'),
                             .manifest_hash = ManifestHash(manifest),
                             .manifest = manifest});
    EXPECT_EQ(heard.manifest_hash(), ManifestHash(manifest));
    return heard.has_manifest();
  };
  EXPECT_TRUE(join(1000));
  EXPECT_FALSE(join(2000)) << "above 128 KiB";
}

TEST_F(GrpcConnectionTest, ASeedHeaderAboveTheBoundIsNotSent) {
  bool called = false;
  service_.on_seed = [&](grpc::ServerReader<v1::SeedChunk>*) {
    called = true;
    return grpc::Status::OK;
  };
  const absl::Status rejected = connection_->SeedParameters({}, ManyTensors(10'000, 220), {});
  EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument) << rejected;
  EXPECT_THAT(std::string(rejected.message()), AllOf(HasSubstr("10000 tensors"), HasSubstr("at most 2097152"),
                                                     HasSubstr("Shorten the names")));
  EXPECT_FALSE(called);
}

TEST(GrpcConnectionAwayTest, NobodyAtTheAddressIsSaid) {
  std::string address;
  {
    const ScriptedService gone;
    address = gone.address();
  }
  const SystemClock clock{};
  GrpcConnection connection({.address = address}, MakeChannel({.address = address}), &clock);
  const auto info = connection.Join({.worker = "w", .secret = "s"});
  EXPECT_EQ(info.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(info.status().message()),
      AllOf(HasSubstr("no answer from the coordinator at " + address + ": "), Not(HasSubstr("last error"))));
}

}  // namespace
}  // namespace atl
