#ifndef ATOLL_SERVER_RPC_CALL_CONTEXT_H_
#define ATOLL_SERVER_RPC_CALL_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/clock.h"
#include "server/access/access_policy.h"
#include "server/access/token_store.h"
#include "server/coordinator.h"
#include "server/rpc/concurrency_limit.h"
#include "server/rpc/connection_progress.h"
#include "server/rpc/fragment_heads.h"
#include "server/rpc/io_pool.h"
#include "server/rpc/live_streams.h"

namespace atl {

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
  const AccessPolicy* access = nullptr;  // null: nobody is asked
  TokenStore* tokens = nullptr;          // null: there are none
  std::string security_warning;          // for the status
  std::string token_warning;             // for those who make a token; empty: it opens what its role may
  ConcurrencyLimit* watchers = nullptr;  // null: any number
  ConcurrencyLimit* observer_pulls = nullptr;  // likewise
  ConnectionProgress* progress = nullptr;
  std::atomic<int64_t>* open_unary = nullptr;            // unary calls in progress; null: nobody asks
  Duration stall_limit = Seconds(60);                    // a stream without a message for this long is ended
  size_t max_watch_backlog = 16384;                      // events that a slow watcher may be behind
  std::function<void(double seconds)> on_pull_streamed;  // may be empty, as the next; see RpcServerOptions
  std::function<void(double seconds)> on_heartbeat;
  std::function<void(std::string_view reason)> on_call_rejected;
  std::function<void(const std::string& peer, const absl::Status& why)> on_call_denied;
};

/// A call came of the connection of this peer, as gRPC names it ("ipv4:127.0.0.1:50123"). Where each
/// further message is to be noted is returned; null when nobody watches.
ConnectionProgress::Signs Moved(const CallContext& call, const std::string& peer);

/// Tells on_call_rejected how a call ended, when it ended badly and not because its caller went away, and
/// on_call_denied, when it was because of who called. Once for each call. `peer` as gRPC names it. Returns
/// the outcome as it is.
const absl::Status& CountRejection(const CallContext& call, const absl::Status& outcome,
                                   absl::FunctionRef<std::string()> peer);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_CALL_CONTEXT_H_
