#include "client/rpc/call_setup.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_format.h"
#include "client/rpc/call_status.h"
#include "client/sync/rejection.h"
#include "protos/wire/trace.h"

namespace atl {
namespace {

/// How long a cancellation may go unnoticed.
constexpr Duration kConnectLook = Seconds(0.1);

std::chrono::system_clock::time_point After(Duration duration) {
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

void CallSetup::AwaitConnection(grpc::Channel& channel, const CallSet& calls) const {
  // A channel without calls is polled every five seconds only (GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS),
  // and a call on a channel that is not connected fails at once: without this wait, nobody would notice a
  // connection being made.
  const MonoTime end = SteadyNow() + options_.connect_wait;
  for (Duration left = options_.connect_wait; left > Duration(0) && !calls.cancelled();
       left = end - SteadyNow()) {
    if (channel.WaitForConnected(After(std::min(left, kConnectLook)))) return;
  }
}

void CallSetup::Introduce(grpc::ClientContext& context) const {
  if (options_.security != nullptr) options_.security->Authorize(context);
  SendTrace(context);
}

void CallSetup::Begin(grpc::ClientContext& context, Duration deadline) const {
  // gRPC turns it into a duration at once, so a jump of the wall clock later does not matter.
  context.set_deadline(After(deadline));
  Introduce(context);
}

absl::Status CallSetup::Translate(const grpc::Status& status) const {
  const bool no_answer = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const absl::Status translated = StatusOfCall(status, options_.address);
  if (!no_answer || !status.error_details().empty()) return translated;
  ProbeFinding why;
  if (options_.security != nullptr) {
    why = options_.security->LookAtConnection(options_.address, status.error_message());
  }
  if (why.text.empty()) why.text = WithoutGrpcTerms(std::string(translated.message()));
  const absl::Status failed(translated.code(), absl::StrFormat("no answer from the coordinator at %s: %s",
                                                               options_.address, why.text));
  return why.looks_permanent || LooksPermanent(translated) ? MarkPermanent(failed) : failed;
}

absl::Status CallSetup::Translate(const grpc::Status& status, bool stalled) const {
  if (status.ok() || !stalled) return Translate(status);
  return absl::UnavailableError(absl::StrFormat(
      "the transfer with the coordinator at %s stood still and was given up", options_.address));
}

}  // namespace atl
