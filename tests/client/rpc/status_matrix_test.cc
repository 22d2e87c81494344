// Every status in every call: what a worker does about it, whoever sent it.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/rpc/call_status.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "client/sync/rejection.h"
#include "core/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/loopback_server.h"
#include "tests/fakes/raw_http2.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// Answers every call with one status, or, for pulls in parts, the side streams only.
class OneAnswer final : public v1::Coordinator::Service {
 public:
  const std::string& address() const { return server_.address(); }

  grpc::Status status;              // set between calls
  std::atomic<bool> hangs = false;  // GetConfirmations, until the client gives up

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::JoinReply*) override { return status; }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest*, v1::HeartbeatReply*) override {
    return status;
  }
  grpc::Status SeedParameters(grpc::ServerContext*, grpc::ServerReader<v1::SeedChunk>*,
                              v1::SeedReply*) override {
    return status;
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullChunk>* writer) override {
    if (request->parts() < 2) return status;
    v1::PullChunk chunk;
    v1::PullHeader& header = *chunk.mutable_header();
    header.set_outcome(v1::PullHeader::PARAMETERS);
    header.set_codec(v1::CODEC_FP32);
    header.set_elements(kElements);
    header.set_payload_bytes(kElements * sizeof(float));
    header.set_end_byte(kElements * sizeof(float) / 2);
    writer->Write(chunk);
    return grpc::Status::OK;
  }
  grpc::Status Push(grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*) override {
    return status;
  }
  grpc::Status GetPushStatus(grpc::ServerContext*, const v1::GetPushStatusRequest*,
                             v1::GetPushStatusReply*) override {
    return status;
  }
  grpc::Status Leave(grpc::ServerContext*, const v1::LeaveRequest*, v1::LeaveReply*) override {
    return status;
  }
  grpc::Status GetConfirmations(grpc::ServerContext* context, const v1::GetConfirmationsRequest*,
                                v1::ConfirmationPage*) override {
    while (hangs && !context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return status;
  }

  static constexpr uint64_t kElements = 1 << 19;  // two chunks

 private:
  LoopbackServer server_{this};
};

using Calls = std::map<std::string, std::function<absl::Status(GrpcConnection&)>>;

/// Every call that a worker makes.
Calls AllCalls() {
  static std::vector<std::byte> payload(OneAnswer::kElements * sizeof(float));
  static const std::vector<float> values(16);
  const PullRequest pull_request{.call = {}, .elements = OneAnswer::kElements};
  return {
      {"Join", [](GrpcConnection& c) { return c.Join({.worker = "w", .secret = {}}).status(); }},
      {"Heartbeat", [](GrpcConnection& c) { return c.Heartbeat({}, {}).status(); }},
      {"SeedParameters",
       [](GrpcConnection& c) {
         const SeedFragment fragment{.id = FragmentId(0), .values = values};
         return c.SeedParameters({}, {}, std::span(&fragment, 1));
       }},
      {"Pull", [pull_request](GrpcConnection& c) { return c.Pull({}, pull_request, payload).status(); }},
      {"Push", [](GrpcConnection& c) { return c.Push({}, {}, payload, 0).status(); }},
      {"GetPushStatus", [](GrpcConnection& c) { return c.GetPushStatus({}, {}).status(); }},
      {"Leave", [](GrpcConnection& c) { return c.Leave({}, "done"); }},
      {"GetConfirmations", [](GrpcConnection& c) { return c.GetConfirmations({}, {}, {}).status(); }},
  };
}

/// What a code means when it comes without a reason of ours.
Reaction Expected(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAUTHENTICATED:
      return Reaction::kExit;
    case grpc::StatusCode::DATA_LOSS:
      return Reaction::kResume;
    default:
      return Reaction::kRetry;
  }
}

GrpcConnectionOptions OptionsFor(const std::string& address) {
  GrpcConnectionOptions options{.address = address};
  options.unary_deadline = Seconds(5);
  return options;
}

TEST(StatusMatrixTest, EveryCodeInEveryCall) {
  OneAnswer service;
  const SystemClock clock{};
  GrpcConnection connection(OptionsFor(service.address()), MakeChannel({.address = service.address()}),
                            &clock);
  for (int code = 1; code <= 16; ++code) {
    service.status = grpc::Status(static_cast<grpc::StatusCode>(code), "as told");
    for (const auto& [name, call] : AllCalls()) {
      const absl::Status seen = call(connection);
      EXPECT_EQ(ReactionTo(seen), Expected(service.status.error_code())) << name << ": " << seen;
      EXPECT_FALSE(absl::IsCancelled(seen)) << name << ": nobody here cancelled it";
      EXPECT_THAT(std::string(seen.message()), HasSubstr("as told")) << name;
      EXPECT_EQ(LooksPermanent(seen), code == grpc::StatusCode::UNIMPLEMENTED) << name << ": " << seen;
    }
  }
}

TEST(StatusMatrixTest, AQuestionWithATimeoutOfItsOwnEndsThen) {
  OneAnswer service;
  service.hangs = true;
  const SystemClock clock{};
  GrpcConnectionOptions options = OptionsFor(service.address());
  options.unary_deadline = Seconds(30);
  GrpcConnection connection(options, MakeChannel({.address = service.address()}), &clock);
  const MonoTime begin = clock.Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(connection.GetConfirmations({}, {}, Seconds(0.2)).status()));
  EXPECT_LT(clock.Now() - begin, Seconds(15));
}

TEST(StatusMatrixTest, AnAnswerWithoutWordsLeavesNoEmptyBrackets) {
  const absl::Status seen = StatusOfCall(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""), "host:1");
  EXPECT_THAT(std::string(seen.message()),
              HasSubstr("host:1 is not a coordinator's data port; it may be the admin port"));
}

TEST(StatusMatrixTest, EveryCodeInTheSecondStreamOfAPull) {
  OneAnswer service;
  const SystemClock clock{};
  GrpcConnectionOptions options = OptionsFor(service.address());
  options.range_channels.push_back(MakeChannel({.address = service.address()}));
  GrpcConnection connection(std::move(options), MakeChannel({.address = service.address()}), &clock);
  const auto pull = AllCalls().at("Pull");
  for (int code = 1; code <= 16; ++code) {
    // The first stream breaks off, too: of two failures that of the first counts.
    service.status = grpc::Status(static_cast<grpc::StatusCode>(code), "as told");
    EXPECT_EQ(ReactionTo(pull(connection)), Reaction::kRetry) << code;
  }
}

/// What the client makes of raw bytes in answer to every call.
void ExpectRetried(const std::string& what, RawHttp2Server::Answer answer, bool looks_permanent = false) {
  RawHttp2Server server(std::move(answer));
  const SystemClock clock{};
  GrpcConnection connection(OptionsFor(server.address()), MakeChannel({.address = server.address()}), &clock);
  for (const auto& [name, call] : AllCalls()) {
    const absl::Status seen = call(connection);
    EXPECT_EQ(ReactionTo(seen), Reaction::kRetry) << what << ", " << name << ": " << seen;
    EXPECT_EQ(LooksPermanent(seen), looks_permanent) << what << ", " << name << ": " << seen;
  }
}

TEST(StatusMatrixTest, AProxysAnswersAreRetried) {
  for (const std::string status : {"500", "502", "503", "504", "429"}) {
    ExpectRetried(status, [status](uint32_t stream) { return HttpAnswer(stream, status); });
  }
  for (const std::string status : {"400", "401", "403", "404", "421"}) {
    ExpectRetried(
        status, [status](uint32_t stream) { return HttpAnswer(stream, status); }, true);
  }
}

TEST(StatusMatrixTest, AnAnswerWithoutGrpcStatusIsRetried) {
  // Retries inside gRPC 1.51 abort the process here (protos/transport/client_channel.h).
  const auto trailers = [](uint32_t stream) { return GrpcHeaders(stream) + Trailer(stream, "x-foo", "bar"); };
  const auto trailers_only = [](uint32_t stream) { return GrpcHeaders(stream, kEndStream); };
  const auto no_number = [](uint32_t stream) {
    return GrpcHeaders(stream) + Trailer(stream, "grpc-status", "abc");
  };
  ExpectRetried("trailers without grpc-status", trailers, /*looks_permanent=*/true);
  ExpectRetried("trailers only", trailers_only, /*looks_permanent=*/true);
  ExpectRetried("not a number", no_number);
}

TEST(StatusMatrixTest, AStreamThatIsResetIsRetried) {
  // All of RFC 9113, 7, but INADEQUATE_SECURITY (12), of which gRPC makes PERMISSION_DENIED.
  for (const uint32_t code : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13}) {
    ExpectRetried("RST_STREAM " + std::to_string(code),
                  [code](uint32_t stream) { return ResetStream(stream, code); });
  }
}

TEST(StatusMatrixTest, AServerThatGoesIsWaitedFor) {
  ExpectRetried("hung up", [](uint32_t) { return std::string(); });
  ExpectRetried("GOAWAY", [](uint32_t) { return Http2Frame(7, 0, 0, Number(0) + Number(0)); });
}

}  // namespace
}  // namespace atl
