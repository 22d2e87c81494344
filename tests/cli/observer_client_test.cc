#include "cli/observer_client.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/membership.h"
#include "gmock/gmock.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace atoll {
namespace {

using ::testing::HasSubstr;

/// Publishes fragments of float32 values, or what a test wants a client to meet.
class Publisher final : public v1::Coordinator::Service {
 public:
  Publisher() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~Publisher() override { server_->Shutdown(std::chrono::system_clock::now()); }
  const std::string& address() const { return address_; }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::JoinReply* reply) override {
    reply->set_incarnation(kObserverIncarnation.value());
    return grpc::Status::OK;
  }

  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullChunk>* writer) override {
    v1::PullChunk chunk;
    v1::PullHeader& header = *chunk.mutable_header();
    header.set_outcome(v1::PullHeader::PARAMETERS);
    header.set_codec(v1::CODEC_FP32);
    header.set_elements(elements);
    header.set_payload_bytes(elements * sizeof(float));
    const std::vector<float> values(4, 1.5F);
    const Hash128 hash = HashBytes(std::as_bytes(std::span(values)));
    header.mutable_published()->set_low(hash.low);
    header.mutable_published()->set_high(hash.high);
    writer->Write(chunk);
    while (stalls && !context->IsCancelled()) std::this_thread::yield();
    chunk.Clear();
    chunk.mutable_data()->assign(values.size() * sizeof(float), '\0');
    std::memcpy(chunk.mutable_data()->data(), values.data(), chunk.data().size());
    chunk.set_crc32c(Crc32c(chunk.data()));
    writer->Write(chunk);
    return grpc::Status::OK;
  }

  // Set between calls.
  uint64_t elements = 4;
  bool stalls = false;  // behind the header

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

class ObserverClientTest : public ::testing::Test {
 protected:
  ObserverClientTest() : client_(ObserverClient::Join(publisher_.address(), Seconds(10)).value()) {}
  Publisher publisher_;
  const std::unique_ptr<ObserverClient> client_;
};

TEST_F(ObserverClientTest, PullsAFragment) {
  const auto pulled = client_->PullHead(0, {.elements = 4});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->values, std::vector<float>(4, 1.5F));
}

TEST_F(ObserverClientTest, AllocatesNothingForAHeaderThatTheLayoutContradicts) {
  publisher_.elements = uint64_t{1} << 36;
  const absl::Status refused = client_->PullHead(0, {.elements = 4}).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has 68719476736 values, and its tensors have 4"));
}

TEST_F(ObserverClientTest, APullThatStallsEnds) {
  publisher_.stalls = true;
  const absl::Status stalled = client_->PullHead(0, {.elements = 4, .stall = Seconds(0.2)}).status();
  EXPECT_TRUE(absl::IsUnavailable(stalled)) << stalled;
  EXPECT_THAT(std::string(stalled.message()), HasSubstr("stalled"));
}

}  // namespace
}  // namespace atoll
