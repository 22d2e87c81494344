#ifndef ATOLL_SERVER_MEMBERS_REJECTED_JOINS_H_
#define ATOLL_SERVER_MEMBERS_REJECTED_JOINS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/ids.h"
#include "server/events/event_throttle.h"
#include "server/views.h"

namespace atl {

/// Workers that were refused at Join and did not get in since: who, why, since when. Bounded, so that
/// strangers who try name after name fill neither the memory, nor the list (a worker that goes on trying
/// stays on it, while a name that was tried once is dropped first), nor the event log. Pure state, not
/// thread-safe.
class RejectedJoins {
 public:
  static constexpr size_t kMost = 128;
  static constexpr size_t kMostPerAddress = 64;
  static constexpr Duration kForgetAfter = Seconds(600);
  /// Events at once, and the time after which another one may follow.
  static constexpr double kEventBurst = EventThrottle::kBurst;
  static constexpr Duration kEventInterval = EventThrottle::kInterval;

  /// True when it is worth an event: a worker that was not on the list, or another reason than before.
  bool Note(const WorkerName& worker, const std::string& address, const absl::Status& rejection,
            MonoTime now);
  /// The worker is in.
  void Joined(const WorkerName& worker) { entries_.erase(worker); }
  /// The worker is banned no more. A rejection for another reason stays.
  void Unbanned(const WorkerName& worker);

  /// By the time of their first attempt.
  std::vector<RejectedJoinView> Views(MonoTime now) const;
  uint64_t total() const { return total_; }

 private:
  struct Entry {
    std::string address;
    std::string reason;
    std::string message;
    MonoTime first = {};
    MonoTime last = {};
    uint64_t attempts = 0;
  };
  using Entries = std::map<WorkerName, Entry>;
  void MakeRoom(const std::string& address, MonoTime now);

  Entries entries_;
  uint64_t total_ = 0;
  EventThrottle events_;
};

/// The reason of a refusal as it is shown and counted: RejectionReasonName, else the name of the status code.
std::string ReasonText(const absl::Status& rejection);

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_REJECTED_JOINS_H_
