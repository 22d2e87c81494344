#ifndef ATOLL_CLIENT_ENGINE_CALLER_LINK_H_
#define ATOLL_CLIENT_ENGINE_CALLER_LINK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ipc/message_socket.h"
#include "common/mutex.h"
#include "common/thread.h"

namespace atl {

/// What the caller wants, besides answering: called on the link's thread, must not block.
struct CallerRequests {
  std::function<void()> drain;
  std::function<void()> stop;
  std::function<void()> gone;  // its process has ended, or closed the client
};

/// The engine's side of the conversation, once the client is open: asks, and listens all the while.
class CallerLink {
 public:
  /// `caller`: the process whose child this one is, for as long as it lives. `socket` outlives this object.
  CallerLink(ipc::MessageSocket* socket, int64_t caller, CallerRequests requests);
  ~CallerLink();
  CallerLink(const CallerLink&) = delete;
  CallerLink& operator=(const CallerLink&) = delete;

  /// Sends the event and waits for its answer. Cancelled once GiveUp was called or the caller is gone. One
  /// call at a time.
  absl::StatusOr<ipc::Answer> Ask(ipc::Event event) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Sends an event without an answer. A caller that is gone hears nothing.
  void Tell(ipc::Event event) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Ends the Ask in progress, and every later one. From any thread.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Listen();
  /// False: the conversation is over.
  bool Take(ipc::MessageType type, const std::string& body) ABSL_LOCKS_EXCLUDED(mutex_);

  ipc::MessageSocket* const socket_;
  const int64_t caller_;
  const CallerRequests requests_;
  std::atomic<bool> closing_{false};
  Mutex mutex_;
  CondVar changed_;
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ipc::Answer> answer_ ABSL_GUARDED_BY(mutex_);  // to the event `sequence_`
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  Thread listener_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_CALLER_LINK_H_
