#include "cli/observer_client.h"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/pull_model.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/membership.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/loopback_server.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// Publishes fragments of float32 values, or what a test wants a client to meet.
class Publisher final : public v1::Coordinator::Service {
 public:
  const std::string& address() const { return server_.address(); }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::JoinReply* reply) override {
    reply->set_incarnation(kObserverIncarnation.value());
    return grpc::Status::OK;
  }

  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullChunk>* writer) override {
    v1::PullChunk chunk;
    v1::PullHeader& header = *chunk.mutable_header();
    if (on_pull) on_pull(*request);
    const uint64_t version = versions[request->fragment()];
    if (request->has_after_version() && version <= request->after_version()) {
      header.set_outcome(v1::PullHeader::NOT_YET);
      writer->Write(chunk);
      return grpc::Status::OK;
    }
    header.set_version(version);
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
  std::map<uint32_t, uint64_t> versions;  // of the fragments
  std::function<void(const v1::PullRequest&)> on_pull;
  uint64_t elements = 4;
  bool stalls = false;  // behind the header

 private:
  LoopbackServer server_{this};
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
  const absl::Status rejected = client_->PullHead(0, {.elements = 4}).status();
  EXPECT_TRUE(absl::IsDataLoss(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("has 68719476736 values, but its tensors have 4"));
}

TEST_F(ObserverClientTest, APullThatStallsEnds) {
  publisher_.stalls = true;
  const absl::Status stalled = client_->PullHead(0, {.elements = 4, .stall = Seconds(0.2)}).status();
  EXPECT_TRUE(absl::IsUnavailable(stalled)) << stalled;
  EXPECT_THAT(std::string(stalled.message()), HasSubstr("stalled"));
}

/// A round of fragment 0 ends after its first pull.
class PullModelTest : public ObserverClientTest {
 protected:
  PullModelTest() {
    publisher_.versions = {{0, 7}, {1, 7}};
    publisher_.on_pull = [this](const v1::PullRequest& request) {
      ++pulls_[request.fragment()];
      if (request.fragment() == 1 && pulls_[1] == 1) publisher_.versions[1] = publisher_.versions[0] = 8;
    };
  }
  static FragmentLayout Fragment(uint32_t id) {
    FragmentLayout layout;
    layout.id = FragmentId(id);
    layout.elements = 4;
    return layout;
  }
  absl::StatusOr<std::vector<PulledFragment>> Pull(SyncMode mode) {
    return PullModel(*client_, {Fragment(0), Fragment(1)}, mode, Seconds(30));
  }
  std::map<uint32_t, int> pulls_;  // by fragment
};

TEST_F(PullModelTest, FragmentsOfABlockingRunAreOfOneVersion) {
  const auto model = Pull(SyncMode::kBlocking);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->at(0).version, 8u);
  EXPECT_EQ(model->at(1).version, 8u);
  EXPECT_EQ(pulls_[0], 2);
  EXPECT_EQ(pulls_[1], 1);
}

TEST_F(PullModelTest, FragmentsOfAnOverlappedRunHaveVersionsOfTheirOwn) {
  const auto model = Pull(SyncMode::kOverlapped);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->at(0).version, 7u);
  EXPECT_EQ(model->at(1).version, 8u);
}

TEST_F(PullModelTest, FragmentsThatOvertakeEachOtherAreUnavailable) {
  uint64_t latest = 10;
  publisher_.on_pull = [&](const v1::PullRequest& request) {
    ++pulls_[request.fragment()];
    publisher_.versions[request.fragment()] = ++latest;
  };
  const absl::Status mixed = Pull(SyncMode::kBlocking).status();
  EXPECT_TRUE(absl::IsUnavailable(mixed)) << mixed;
  EXPECT_THAT(std::string(mixed.message()), HasSubstr("even after 5 more pulls"));
  EXPECT_EQ(pulls_[0] + pulls_[1], 2 + 5);
}

TEST_F(PullModelTest, AFragmentThatStaysBehindIsUnavailable) {
  publisher_.on_pull = nullptr;
  publisher_.versions = {{0, 7}, {1, 8}};
  EXPECT_TRUE(absl::IsUnavailable(Pull(SyncMode::kBlocking).status()));
}

}  // namespace
}  // namespace atl
