#include <array>
#include <string>

#include "atoll/v1/admin.pb.h"
#include "atoll/v1/coordinator.pb.h"
#include "client/rpc/convert.h"
#include "common/status_detail.h"
#include "core/codec.h"
#include "core/membership.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/manifest.h"
#include "protos/wire/pull.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"
#include "protos/wire/status.h"
#include "server/rpc/decode_admin.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

template <typename Message, typename Check>
void Parse(const std::string& bytes, const Check& check) {
  Message message;
  if (message.ParseFromString(bytes)) check(message);
}

void CheckJoin(const v1::JoinRequest& request) {
  const auto join = JoinCallFromProto(request);
  if (join.ok()) ATOLL_FUZZ_REQUIRE(ValidateWorkerName(join->worker).ok());
}

void CheckManifest(const v1::Manifest& message) {
  const auto manifest = ManifestFromProto(message);
  if (!manifest.ok()) return;
  ATOLL_FUZZ_REQUIRE(ValidateManifest(*manifest).ok());
  const auto again = ManifestFromProto(ManifestToProto(*manifest));
  ATOLL_FUZZ_REQUIRE(again.ok() && *again == *manifest && ManifestHash(*again) == ManifestHash(*manifest));
}

void CheckPull(const v1::PullRequest& request) {
  (void)MemberRefFromProto(request.worker());
  (void)PullPartFromProto(request);
  const auto pull = PullCallFromProto(request);
  if (pull.ok()) ATOLL_FUZZ_REQUIRE(pull->wait <= Seconds(60));
}

void CheckPullHeader(const v1::PullHeader& header) {
  PullRequest request{.call = {.fragment = FragmentId(0), .after = Version(3), .have = Version(3)},
                      .elements = 4096};
  const auto pulled = PulledFromProto(header, request);
  const uint64_t room = CodecFor(request.codec).EncodedSize(request.elements);
  if (pulled.ok()) ATOLL_FUZZ_REQUIRE(pulled->payload_bytes <= room);
}

}  // namespace

// which:u8, then a message as the coordinator's ports get it.
void FuzzClientMessage(FuzzInput in) {
  const uint8_t which = in.Byte();
  const std::string bytes = in.RestText();
  switch (which % 9) {
    case 0:
      return Parse<v1::JoinRequest>(bytes, CheckJoin);
    case 1:
      return Parse<v1::HeartbeatRequest>(bytes, [](const auto& m) {
        (void)MemberRefFromProto(m.worker());
        (void)HeartbeatCallFromProto(m);
      });
    case 2:
      return Parse<v1::PushHeader>(bytes, [](const auto& m) { (void)PushHeaderFromProto(m); });
    case 3:
      return Parse<v1::GetPushStatusRequest>(bytes, [](const auto& m) { (void)PushKeyFromProto(m.push()); });
    case 4:
      return Parse<v1::PullRequest>(bytes, CheckPull);
    case 5:
      return Parse<v1::ControlRunRequest>(bytes, [](const auto& m) { (void)DecodeRunAction(m); });
    case 6:
      return Parse<v1::ControlWorkerRequest>(bytes, [](const auto& m) { (void)DecodeControlWorker(m); });
    case 7:
      return Parse<v1::SetConfigRequest>(bytes, [](const auto& m) { (void)DecodeSettings(m); });
    default:
      return Parse<v1::Manifest>(bytes, CheckManifest);
  }
}

// which:u8, then a message as a worker gets it.
void FuzzServerMessage(FuzzInput in) {
  const uint8_t which = in.Byte();
  const std::string bytes = in.RestText();
  switch (which % 4) {
    case 0:
      return Parse<v1::JoinReply>(bytes, [](const auto& m) { (void)JoinedRunFromProto(m, {}); });
    case 1:
      return Parse<v1::HeartbeatReply>(bytes, [](const auto& m) { (void)HeartbeatReplyFromProto(m); });
    case 2:
      return Parse<v1::PullHeader>(bytes, CheckPullHeader);
    default:
      return Parse<v1::GetPushStatusReply>(bytes, [](const auto& m) { (void)PushStatusReplyFromProto(m); });
  }
}

// code:u8, then the google.rpc.Status in the trailers.
void FuzzWireStatus(FuzzInput in) {
  const auto code = static_cast<grpc::StatusCode>(in.Byte() % 20);
  const std::string details = in.RestText();
  const absl::Status status = StatusFromGrpc(grpc::Status(code, "refused", details));
  if (status.ok()) return;
  const auto detail = DetailOf(status);
  const absl::Status again = StatusFromGrpc(StatusToGrpc(status));
  ATOLL_FUZZ_REQUIRE(again.code() == status.code());
  if (detail && detail->retry_after) ATOLL_FUZZ_REQUIRE(*detail->retry_after >= Duration::zero());
  // As it travels inside a process.
  absl::Status inside = absl::InternalError("inside");
  inside.SetPayload(kStatusDetailUrl, absl::Cord(details));
  static_cast<void>(DetailOf(inside));
}

}  // namespace atl::fuzz
