#ifndef ATOLL_SERVER_RPC_STREAM_COUNTER_H_
#define ATOLL_SERVER_RPC_STREAM_COUNTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace atl {

/// How many streams gRPC holds of the connections to one port of this process: those that have begun and that
/// it has not taken apart yet, whatever was called, and also where no handler has seen the call yet. From
/// gRPC's own counters (channelz, gRFC A14). Not thread-safe.
class StreamCounter {
 public:
  explicit StreamCounter(uint16_t port) : port_(port) {}

  /// Of the connections from these peers ("127.0.0.1:50123", "[::1]:50123"), in their order; 0 where gRPC
  /// knows of none. Takes some 10 microseconds for each, and as many again for each connection of the process
  /// when there is a new one among them.
  std::vector<uint64_t> Count(const std::vector<std::string>& peers);

 private:
  uint64_t CountOne(const std::string& peer);
  void FindSockets();

  const uint16_t port_;
  std::map<std::string, std::vector<intptr_t>> sockets_;  // channelz's numbers; one peer may be at two ports
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_STREAM_COUNTER_H_
