#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "common/clock.h"
#include "common/crc32c.h"
#include "common/digest.h"
#include "common/random.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/model_shape.h"
#include "core/payload_gaps.h"
#include "core/payload_stats.h"

// hostile_worker ADDRESS NAME ATTACK: a member that keeps to the protocol and computes nothing. It joins,
// pulls every version, and pushes for it
//
//   away   a hundred times the step back to where the version before was
//   noise  noise of a thousand times that step's norm
//   nan    the same with one value that is not a number
//
// until it is refused for good. Exit codes: 0 banned, 1 the run ended and it was not, 2 anything else.

namespace atl {
namespace {

using Values = std::vector<float>;

class HostileWorker {
 public:
  HostileWorker(const std::string& address, WorkerName name, std::string attack)
      : name_(std::move(name)),
        attack_(std::move(attack)),
        secret_(RandomBytes(32)),
        connection_(
            GrpcConnectionOptions{.address = address, .unary_deadline = Seconds(20), .stall = Seconds(20)},
            MakeChannel({.address = address}), &clock_) {}

  absl::Status Run() {
    ATOLL_RETURN_IF_ERROR(Join());
    for (;;) {
      const absl::StatusOr<PulledVersion> pulled = Pull();
      if (absl::IsNotFound(pulled.status())) {  // a member no more
        ATOLL_RETURN_IF_ERROR(Join());
        continue;
      }
      ATOLL_RETURN_IF_ERROR(pulled.status());
      if (pulled->outcome == PullOutcome::kRunFinished) return absl::OutOfRangeError("the run has ended");
      if (pulled->outcome != PullOutcome::kParameters) continue;
      const absl::Status pushed = Push(*pulled);
      // Refused for what it is: it comes again with the next version. Refused as who it is: the next call
      // says.
      if (!pushed.ok()) std::fprintf(stderr, "%s\n", pushed.ToString().c_str());
      if (absl::IsNotFound(pushed) || absl::IsPermissionDenied(pushed)) ATOLL_RETURN_IF_ERROR(Join());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  absl::Status Join() {
    JoinCall parameters{.worker = name_, .secret = secret_};
    ATOLL_ASSIGN_OR_RETURN(JoinedRun asked, connection_.Join(parameters));  // for the configuration
    const Manifest manifest = ManifestOf(asked.run.model).value();
    ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(manifest, 1));
    layout_ = layouts.front();
    elements_ = layout_.elements;
    parameters.manifest_hash = ManifestHash(manifest);
    // It leaves the seeding to the others.
    while (asked.manifest_hash.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      JoinCall again{.worker = name_, .secret = secret_};
      ATOLL_ASSIGN_OR_RETURN(asked, connection_.Join(again));
    }
    ATOLL_ASSIGN_OR_RETURN(info_, connection_.Join(parameters));
    base_.reset();
    return absl::OkStatus();
  }

  absl::StatusOr<PulledVersion> Pull() {
    PullRequest request{.call = {.fragment = FragmentId(0), .after = base_, .wait = Seconds(1)}};
    request.elements = elements_;
    std::vector<std::byte> payload(elements_ * sizeof(float));
    ATOLL_ASSIGN_OR_RETURN(const PulledVersion pulled, connection_.Pull(info_->member, request, payload));
    if (pulled.outcome != PullOutcome::kParameters) return pulled;
    before_ = std::exchange(now_, Values(elements_));
    CodecFor(CodecKind::kFp32).DecodeRange(payload, elements_, 0, now_);
    base_ = pulled.version;
    return pulled;
  }

  Values Contribution() {
    Values delta(elements_);
    for (size_t i = 0; i < before_.size(); ++i) delta[i] = 100 * (now_[i] - before_[i]);
    if (attack_ == "away") return delta;
    const double norm = before_.empty() ? 1000 : 10 * VectorNorm(delta);
    const double deviation = norm / std::sqrt(static_cast<double>(elements_));
    for (float& value : delta) {
      const double length = std::sqrt(-2 * std::log(1 - random_.Uniform()));
      value = static_cast<float>(deviation * length * std::cos(2 * std::numbers::pi * random_.Uniform()));
    }
    ClearGaps(layout_, delta);  // or the coordinator would reject it for its form
    if (attack_ == "nan") delta[elements_ / 2] = std::numeric_limits<float>::quiet_NaN();
    return delta;
  }

  absl::Status Push(const PulledVersion& pulled) {
    const Values delta = Contribution();
    const auto payload = std::as_bytes(std::span(delta));
    PushHeader header{.key = {.fragment = FragmentId(0), .base = pulled.version, .sequence = 0},
                      .payload_bytes = payload.size(),
                      .payload_crc32c = Crc32c(payload)};
    header.tokens = uint64_t{1} << 40;
    header.steps = 1;
    header.mean_loss = 0.001;
    return connection_.Push(info_->member, header, payload, 0).status();
  }

  const WorkerName name_;
  const std::string attack_;
  const std::string secret_;
  const SystemClock clock_{};
  GrpcConnection connection_;
  SplitMixGenerator random_{RandomNonZero64()};
  std::optional<JoinedRun> info_;
  FragmentLayout layout_;
  uint64_t elements_ = 0;
  std::optional<Version> base_;
  Values before_;
  Values now_;
};

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const absl::Status ended = atl::HostileWorker(argv[1], argv[2], argv[3]).Run();
  std::fprintf(stderr, "%s\n", ended.ToString().c_str());
  if (absl::IsPermissionDenied(ended)) return 0;
  return absl::IsOutOfRange(ended) ? 1 : 2;
}
