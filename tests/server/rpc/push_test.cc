// Uploads: Push and SeedParameters over a socket.
#include <latch>

#include "common/block_compression.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

class PushTest : public RpcFixture {
 protected:
  /// Sends these messages as one push; the reply is in reply_.
  grpc::Status Push(const std::vector<v1::PushChunk>& messages) {
    const auto context = Context();
    const auto writer = data_->Push(context.get(), &reply_);
    for (const v1::PushChunk& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  v1::PushReply reply_;
};

TEST_F(PushTest, ManyChunksArriveInOrder) {
  Serve();
  std::string payload(5 * kWireChunkBytes / 2, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 2654435761u >> 13);
  std::vector<v1::PushChunk> messages = {PushHeaderOf(payload.size())};
  for (size_t at = 0; at < payload.size(); at += kWireChunkBytes) {
    messages.push_back(PushChunkOf(at, payload.substr(at, kWireChunkBytes)));
  }
  const grpc::Status status = Push(messages);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply_.head_version(), 7u);
  EXPECT_EQ(reply_.expected(), 2u);
  EXPECT_TRUE(coordinator_.pushed() == payload);  // not printed: megabytes
}

TEST_F(PushTest, ADamagedChunkIsRejectedAndTheSessionIsGoneBeforeTheAnswer) {
  Serve();
  v1::PushChunk damaged = PushChunkOf(3, "def");
  damaged.set_data("dEf");
  const grpc::Status status = Push({PushHeaderOf(6), PushChunkOf(0, "abc"), damaged});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ReasonIn(status), "BAD_CHUNK");
  EXPECT_EQ(coordinator_.open_pushes, 0);  // so that the client may resume at once
  EXPECT_EQ(coordinator_.pushed(), "abc");
}

TEST_F(PushTest, TheFirstMessageIsTheHeaderAndOnlyThat) {
  Serve();
  EXPECT_EQ(Push({PushChunkOf(0, "abc")}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::PushChunk both = PushHeaderOf(3);
  both.set_data("abc");
  EXPECT_EQ(Push({both}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Push({PushHeaderOf(3), PushHeaderOf(3)}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Push({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::PushChunk no_codec = PushHeaderOf(3);
  no_codec.mutable_header()->clear_codec();
  EXPECT_EQ(ReasonIn(Push({no_codec})), "WRONG_CODEC");
}

TEST_F(PushTest, WrongOffsetsAndSizesAreRejected) {
  Serve();
  EXPECT_EQ(ReasonIn(Push({PushHeaderOf(6), PushChunkOf(1, "abc")})), "BAD_CHUNK");
  EXPECT_EQ(ReasonIn(Push({PushHeaderOf(6), PushChunkOf(0, "abc"), PushChunkOf(0, "abc")})), "BAD_CHUNK");
  EXPECT_EQ(ReasonIn(Push({PushHeaderOf(2), PushChunkOf(0, "abc")})), "WRONG_SIZE");
  EXPECT_EQ(ReasonIn(Push({PushHeaderOf(6), PushChunkOf(0, "abc")})), "BAD_CHUNK");  // ends too early
}

TEST_F(PushTest, AnOversizedChunkAndAnOversizedMessageAreRejected) {
  Serve();
  const grpc::Status chunk =
      Push({PushHeaderOf(uint64_t{4} << 20), PushChunkOf(0, std::string(kWireChunkBytes + 1, 'x'))});
  EXPECT_EQ(chunk.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(chunk.error_message(), HasSubstr("at most 1048576"));
  const grpc::Status message =
      Push({PushHeaderOf(uint64_t{4} << 20), PushChunkOf(0, std::string(kMaxMessageBytes, 'x'))});
  EXPECT_EQ(message.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(coordinator_.pushed(), "");
}

TEST_F(PushTest, APackedChunkCountsWithWhatItHolds) {
  Serve();
  const std::string payload(kWireChunkBytes, 'z');
  std::string packed(1000, '\0');
  packed.resize(BlockCompressor().Compress(std::as_bytes(std::span(payload)),
                                           std::as_writable_bytes(std::span(packed))));
  v1::PushChunk chunk = PushChunkOf(0, payload);
  chunk.set_data(packed);
  chunk.set_compression(v1::COMPRESSION_ZSTD);
  EXPECT_EQ(Push({PushHeaderOf(payload.size()), chunk}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  chunk.set_uncompressed_bytes(static_cast<uint32_t>(payload.size()));
  const grpc::Status status = Push({PushHeaderOf(payload.size()), chunk});
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(coordinator_.pushed() == payload);
  chunk.set_compression(static_cast<v1::Compression>(99));
  const grpc::Status unknown = Push({PushHeaderOf(payload.size()), chunk});
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(unknown.error_message(), HasSubstr("compression"));
}

TEST_F(PushTest, WhatIsNoMessageIsRejectedAndTheServerGoesOn) {
  Serve();
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string(100, '\0'),
                                   std::string("\x0a\x05"
                                               "ab")}) {
    const auto context = Context();
    grpc::ByteBuffer answer;
    const grpc::internal::RpcMethod method("/atoll.v1.Coordinator/Push",
                                           grpc::internal::RpcMethod::CLIENT_STREAMING, data_channel_);
    const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
        grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(data_channel_.get(), method,
                                                                      context.get(), &answer));
    const grpc::Slice slice(bytes);
    writer->Write(grpc::ByteBuffer(&slice, 1));
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_TRUE(Push({PushHeaderOf(3), PushChunkOf(0, "abc")}).ok());
}

TEST_F(PushTest, RejectionsOfTheCoordinatorEndTheStream) {
  coordinator_.on_push_start = [](const PushHeader&) {
    return Reject(RejectionReason::kStaleBase, "version 3 is not the head");
  };
  Serve();
  const grpc::Status status = Push({PushHeaderOf(6), PushChunkOf(0, "abc")});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(status), "STALE_BASE");
}

TEST_F(PushTest, WhatDoesNotFitTheBudgetIsToComeBackLater) {
  coordinator_.on_push_start = [](const PushHeader&) {
    return Reject(
        Rejection{.reason = RejectionReason::kOverBudget, .metadata = {}, .retry_after = Seconds(1)},
        "contributions in flight: 100 of 100 bytes are in use");
  };
  Serve();
  // The refusal answers the header: the payload is not waited for.
  const auto context = Context();
  const auto writer = data_->Push(context.get(), &reply_);
  ASSERT_TRUE(writer->Write(PushHeaderOf(uint64_t{1} << 40)));
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto detail = DetailOf(StatusFromGrpc(status));
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, "OVER_BUDGET");
  EXPECT_EQ(detail->retry_after, Seconds(1));
}

TEST_F(PushTest, AContributionThatIsThereIsAnsweredWithoutItsBytes) {
  coordinator_.push_already_accepted = true;
  Serve();
  const auto context = Context();
  const auto writer = data_->Push(context.get(), &reply_);
  ASSERT_TRUE(writer->Write(PushHeaderOf(uint64_t{1} << 30)));
  const grpc::Status status = writer->Finish();  // without WritesDone: the server does not wait for the rest
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(reply_.duplicate());
}

TEST_F(PushTest, ACancelledPushLeavesNothingOpen) {
  Serve();
  auto context = Context();
  auto writer = data_->Push(context.get(), &reply_);
  ASSERT_TRUE(writer->Write(PushHeaderOf(6)));
  ASSERT_TRUE(writer->Write(PushChunkOf(0, "abc")));
  ASSERT_TRUE(Eventually([&] { return coordinator_.pushed() == "abc"; }));
  context->TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return coordinator_.open_pushes == 0; }));
}

TEST_F(PushTest, AStreamThatStandsStillIsEndedAndOneThatMovesIsNot) {
  RpcServerOptions options = Options();
  options.stall_limit = Seconds(0.25);
  Serve(options);
  const auto begun = std::chrono::steady_clock::now();
  {
    const auto context = Context();
    const auto writer = data_->Push(context.get(), &reply_);
    ASSERT_TRUE(writer->Write(PushHeaderOf(6)));
    const grpc::Status status = writer->Finish();  // waits for the server, which waits for a message
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(250));
  // Ten times as long as the limit in all, but never still for that long. Time itself is the subject here.
  const auto context = Context();
  const auto writer = data_->Push(context.get(), &reply_);
  ASSERT_TRUE(writer->Write(PushHeaderOf(25)));
  for (uint64_t i = 0; i < 25; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(writer->Write(PushChunkOf(i, "x"))) << i;
  }
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
}

TEST_F(PushTest, HeartbeatsAreAnsweredWhileEveryUploadWaitsForTheDisk) {
  std::latch release(1);
  std::atomic<int> waiting{0};
  coordinator_.on_push_finish = [&]() -> absl::StatusOr<PushResult> {
    ++waiting;
    release.wait();
    return PushResult();
  };
  RpcServerOptions options = Options();
  options.sync_threads = 2;
  Serve(options);
  std::vector<std::thread> pushes;
  for (int i = 0; i < 4; ++i) {
    pushes.emplace_back([&] {
      v1::PushReply reply;
      const auto context = Context();
      const auto writer = data_->Push(context.get(), &reply);
      writer->Write(PushHeaderOf(3));
      writer->Write(PushChunkOf(0, "abc"));
      writer->WritesDone();
      EXPECT_TRUE(writer->Finish().ok());
    });
  }
  ASSERT_TRUE(Eventually([&] { return waiting == 2; }));
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Self();
  v1::HeartbeatReply reply;
  EXPECT_TRUE(data_->Heartbeat(Context().get(), request, &reply).ok());
  release.count_down();
  for (std::thread& push : pushes) push.join();
}

TEST_F(PushTest, GetPushStatusSaysWhereToGoOn) {
  coordinator_.push_resumes_at = 3;
  Serve();
  v1::GetPushStatusRequest request;
  *request.mutable_worker() = Self();
  v1::GetPushStatusReply status;
  ASSERT_TRUE(data_->GetPushStatus(Context().get(), request, &status).ok());
  EXPECT_EQ(status.state(), v1::GetPushStatusReply::PARTIAL);
  ASSERT_EQ(status.received_bytes(), 3u);
  EXPECT_TRUE(Push({PushHeaderOf(6), PushChunkOf(3, "def")}).ok());
}

TEST_F(PushTest, ASeedArrivesWhole) {
  Serve();
  v1::SeedChunk header;
  *header.mutable_header()->mutable_worker() = Self();
  v1::TensorSpec* tensor = header.mutable_header()->mutable_manifest()->add_tensors();
  tensor->set_name("t");
  tensor->add_shape(2);
  v1::SeedChunk chunk;
  chunk.set_data("12345678");
  chunk.set_crc32c(Crc32c(chunk.data()));
  const auto seed = [&](const std::vector<v1::SeedChunk>& messages, v1::SeedReply* reply) {
    const auto context = Context();
    const auto writer = data_->SeedParameters(context.get(), reply);
    for (const v1::SeedChunk& message : messages) writer->Write(message);
    writer->WritesDone();
    return writer->Finish();
  };
  v1::SeedReply reply;
  ASSERT_TRUE(seed({header, chunk}, &reply).ok());
  EXPECT_EQ(reply.published(0).high(), 2u);
  EXPECT_EQ(coordinator_.seeded(), "12345678");
  EXPECT_EQ(seed({chunk}, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  tensor->set_shape(0, -1);
  EXPECT_EQ(seed({header}, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  chunk.set_crc32c(0);
  tensor->set_shape(0, 2);
  EXPECT_EQ(ReasonIn(seed({header, chunk}, &reply)), "BAD_CHUNK");
}

}  // namespace
}  // namespace atl
