#ifndef ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_
#define ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_

#include <memory>
#include <span>
#include <vector>

#include "atoll/client.h"
#include "client/ipc/messages.h"
#include "client/library/engine_process.h"
#include "client/library/failure.h"

namespace atl::library {

/// A published version, pulled. Immutable; may be read by several threads.
class Snapshot {
 public:
  static Result Pull(std::vector<ipc::Option> options, std::unique_ptr<Snapshot>& snapshot);

  const ipc::Snapshot& facts() const { return facts_; }
  /// Of tensor `index`, which is there.
  std::span<const float> values(size_t index) const;

 private:
  explicit Snapshot(std::unique_ptr<EngineProcess> engine) : engine_(std::move(engine)) {}
  Result Take(const std::string& body);

  const std::unique_ptr<EngineProcess> engine_;  // has ended; its memory stays
  ipc::Snapshot facts_;
};

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_SNAPSHOT_H_
