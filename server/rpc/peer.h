#ifndef ATOLL_SERVER_RPC_PEER_H_
#define ATOLL_SERVER_RPC_PEER_H_

#include <string>

// Where a call comes from, as people and counters read it.

namespace atl {

/// "127.0.0.1:50123" of gRPC's "ipv4:127.0.0.1:50123".
std::string PeerAddress(const std::string& peer);
/// "127.0.0.1" of it; without brackets.
std::string PeerHost(const std::string& peer);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_PEER_H_
