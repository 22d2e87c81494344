#ifndef ATOLL_SERVER_RPC_CONNECTION_LEDGER_H_
#define ATOLL_SERVER_RPC_CONNECTION_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "server/rpc/connection_progress.h"

namespace atoll {

/// How many connections a port takes at the same time.
struct ConnectionLimits {
  size_t total = 4096;
  size_t per_address = 2048;  // of one IP address, so that no one machine takes all of them
  /// Bytes that a connection may bring without a call or a message coming of them: what gRPC holds meanwhile
  /// is bounded by nothing else (a header block that goes on for ever).
  uint64_t silent_bytes = uint64_t{32} << 20;
  /// The same of all connections together; beyond it the greediest are ended first.
  uint64_t all_silent_bytes = uint64_t{256} << 20;
  /// The same two where a message of the connection waits for this server: its windows fill meanwhile.
  uint64_t held_bytes = uint64_t{512} << 20;
  uint64_t all_held_bytes = uint64_t{1} << 30;
  /// Calls between two looks (Greedy) that are no flood. More of them, for kBusyLooks looks on end, are: of
  /// streams that are given up at once (CVE-2023-44487), each of which costs gRPC some 20 KiB for 100 bytes
  /// until it has caught up. The more they are, the fewer looks it takes. A slow machine gets to fewer.
  uint32_t calls_per_look = 300;
};

/// A connection that was accepted and handed over. The descriptor belongs to somebody else, who closes it
/// without a word; the cookie tells whether it is still the same socket.
struct OpenSocket {
  int fd = -1;
  uint64_t cookie = 0;  // the kernel's name of the socket, which no other one gets
  std::string host = {};
  ConnectionProgress::Signs signs = {};  // taken down by the ledger
  uint64_t heard_bytes = 0;              // received by the time of the last call or message
  uint32_t busy_looks = 0;               // on end, one with many calls for several
};

/// The kernel's cookie of the socket that the descriptor is now (SO_COOKIE); 0: it is none.
uint64_t SocketCookie(int fd);
/// Whether the descriptor is still that socket. It may be closed, and given to another, at any moment: a
/// look, no promise.
bool IsStillOpen(const OpenSocket& socket);

/// The connections of one port. Counts what was admitted, and looks which of it is gone only when a limit
/// seems to be reached, and then not oftener than kLookInterval: a flood buys no more work than that. Not
/// thread-safe.
class ConnectionLedger {
 public:
  enum class Verdict : uint8_t { kAdmitted, kTooMany, kTooManyOfAddress };
  enum class Of : uint8_t { kBytes, kCalls };
  struct Greed {
    int fd = -1;
    Of of = Of::kBytes;
  };
  using Alive = std::function<bool(const OpenSocket&)>;
  static constexpr Duration kLookInterval = Seconds(0.1);
  static constexpr uint32_t kBusyLooks = 10;
  static constexpr uint32_t kMostLooksAtOnce = 10;

  explicit ConnectionLedger(const ConnectionLimits& limits, Alive alive = IsStillOpen)
      : limits_(limits), alive_(std::move(alive)) {}

  /// Counts the connection when there is room for it.
  Verdict Admit(const OpenSocket& socket, MonoTime now);
  /// Forgets what is gone; how many there are.
  size_t Count(MonoTime now);
  /// Those that have brought too many bytes without saying anything, of which `received` tells how many there
  /// were so far, and those that call and call. They are forgotten here; the caller ends them. To be asked
  /// once every kLookInterval.
  std::vector<Greed> Greedy(const std::function<uint64_t(int fd)>& received);

 private:
  using Bytes = std::vector<std::pair<uint64_t, int>>;  // brought since it was heard, descriptor

  static void AddGreediest(Bytes bytes, uint64_t limit, uint64_t limit_of_all, std::vector<Greed>& greedy);
  bool CallsTooMuch(OpenSocket& socket) const;
  Verdict Judge(const std::string& host) const;
  void Look(MonoTime now);
  void Recount();

  const ConnectionLimits limits_;
  const Alive alive_;
  std::vector<OpenSocket> open_;
  std::map<std::string, size_t> by_host_;
  MonoTime looked_{};
  bool ever_looked_ = false;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_CONNECTION_LEDGER_H_
