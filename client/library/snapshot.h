#ifndef ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_
#define ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "atoll/client.h"
#include "client/ipc/messages.h"
#include "client/library/engine_process.h"
#include "client/library/failure.h"

namespace atl::library {

/// A published version. Once it is there it does not change, and may be read by several threads.
class Snapshot {
 public:
  /// Starts an engine that pulls it. The engine ends with this object.
  static Result Open(std::vector<ipc::Option> options, std::unique_ptr<Snapshot>& snapshot);
  /// Waits until it is there, or cannot be had. ATL_DEADLINE_EXCEEDED: not yet.
  Result Wait(double timeout_seconds);

  /// Empty until it is there.
  const ipc::Snapshot& facts() const { return facts_; }
  /// Of tensor `index`, which is there.
  std::span<const float> values(size_t index) const;

 private:
  explicit Snapshot(std::unique_ptr<EngineProcess> engine);
  /// What the engine's only message says.
  Result Take(ipc::MessageType type, const std::string& body);
  Result TakeFacts(const std::string& body);

  const pid_t process_;
  const std::unique_ptr<EngineProcess> engine_;  // its memory stays when it has ended
  std::optional<Result> result_;                 // of the pull, once it is known
  ipc::Snapshot facts_;
};

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_
