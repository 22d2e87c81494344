#ifndef ATOLL_CLI_OBSERVER_CLIENT_H_
#define ATOLL_CLI_OBSERVER_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "cli/rpc_client.h"
#include "common/clock.h"
#include "core/protocol/member_ref.h"

namespace atl {

/// One published version of a fragment, decoded: a flat float32 vector in layout order.
struct PulledFragment {
  uint64_t version = 0;
  std::vector<float> values;
};

/// Limits of a pull.
struct PullLimits {
  uint64_t elements =
      0;  // of the fragment, from the run's manifest; a pull of another size is rejected before allocation
  Duration stall = Seconds(30);                       // between two messages
  std::optional<uint64_t> newer_than = std::nullopt;  // wait a moment for a version above this one
};

/// A reader on the data port. It joins as an observer, so rounds do not wait for it. Not thread-safe.
class ObserverClient {
 public:
  /// Joins the run; the destructor leaves it. Unavailable if nobody answers within `deadline`.
  static absl::StatusOr<std::unique_ptr<ObserverClient>> Join(const std::string& address, Duration deadline,
                                                              SecurityPtr security = ChannelSecurity::Plain(),
                                                              const WaitNotice& notice = nullptr);
  ~ObserverClient();

  const v1::JoinReply& run() const { return run_; }

  /// Pulls the head of one fragment. Checks each chunk's crc32c and the published content hash. DataLoss if
  /// its size is not limits.elements; Unavailable if nothing arrives for limits.stall; NotFound if there is
  /// no version above limits.newer_than.
  absl::StatusOr<PulledFragment> PullHead(uint32_t fragment, const PullLimits& limits);

  /// Calls `sink` with each event after `after_sequence` until it returns false or the stream ends.
  absl::Status Watch(uint64_t after_sequence, const std::function<bool(const v1::RunEvent&)>& sink);

 private:
  ObserverClient(std::string address, SecurityPtr security, std::unique_ptr<v1::Coordinator::Stub> stub,
                 v1::JoinReply run, MemberRef self);

  const std::string address_;
  const SecurityPtr security_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  const v1::JoinReply run_;
  const MemberRef self_;
};

}  // namespace atl

#endif  // ATOLL_CLI_OBSERVER_CLIENT_H_
