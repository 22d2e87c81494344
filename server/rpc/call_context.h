#ifndef ATOLL_SERVER_RPC_CALL_CONTEXT_H_
#define ATOLL_SERVER_RPC_CALL_CONTEXT_H_

#include <functional>
#include <string>

#include "common/clock.h"
#include "server/access/access_policy.h"
#include "server/access/token_store.h"
#include "server/coordinator.h"
#include "server/rpc/fragment_heads.h"
#include "server/rpc/io_pool.h"
#include "server/rpc/live_streams.h"

namespace atoll {

/// What every call needs of the server around it; all of it outlives every call.
struct CallContext {
  Coordinator* coordinator = nullptr;
  const Clock* clock = nullptr;
  IoPool* calls = nullptr;    // short calls: joins, heartbeats, status
  IoPool* uploads = nullptr;  // chunks on their way to the disk; never in the way of a heartbeat
  IoPool* syncs = nullptr;    // the ends of uploads: checks and syncs, never in the way of others' chunks
  IoPool* admin = nullptr;    // what operators ask for; may take minutes
  LiveStreams* streams = nullptr;
  FragmentHeads* heads = nullptr;
  const AccessPolicy* access = nullptr;                  // null: nobody is asked
  TokenStore* tokens = nullptr;                          // null: there are none
  std::string security_warning;                          // for the status
  Duration stall_limit = Seconds(60);                    // a stream without a message for this long is ended
  size_t max_watch_backlog = 16384;                      // events that a slow watcher may be behind
  std::function<void(double seconds)> on_pull_streamed;  // may be empty, as the next; see RpcServerOptions
  std::function<void(double seconds)> on_heartbeat;
  std::function<void(const absl::Status& refusal)> on_refused;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_CALL_CONTEXT_H_
