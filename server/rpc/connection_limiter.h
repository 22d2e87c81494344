#ifndef ATOLL_SERVER_RPC_CONNECTION_LIMITER_H_
#define ATOLL_SERVER_RPC_CONNECTION_LIMITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "server/rpc/connection_progress.h"

namespace atl {

/// How many connections a port takes at the same time.
struct ConnectionLimits {
  size_t total = 4096;
  size_t per_address = 2048;  // of one IP address, so that no one machine takes all of them
  /// Bytes that a connection may bring without a call or a message coming of them: what gRPC holds meanwhile
  /// is bounded by nothing else (a header block that goes on for ever).
  uint64_t silent_bytes = uint64_t{32} << 20;
  /// The same of all connections together; beyond it the greediest of the greediest address are ended first.
  /// A connection that calls came of, and that holds no more than one message (kOneMessage), is ended last.
  /// For the others, less what connections that were ended hold until they are closed (EndingBytes).
  uint64_t all_silent_bytes = uint64_t{256} << 20;
  /// The same two where a message of the connection waits for this server: its windows fill meanwhile.
  uint64_t held_bytes = uint64_t{512} << 20;
  uint64_t all_held_bytes = uint64_t{1} << 30;
  /// Streams that gRPC holds of a connection. HTTP/2 lets a client have max_streams_per_connection
  /// (server.h), but one that gives its streams up at once (CVE-2023-44487) may begin as many as it likes,
  /// and each costs gRPC some 20 KiB for 100 bytes until it has caught up.
  uint64_t open_streams = 1024;
  /// The same of all connections together.
  uint64_t all_open_streams = 16384;
};

/// A connection that was accepted and handed over. The descriptor belongs to somebody else, who closes it
/// without a word; the cookie tells whether it is still the same socket.
struct OpenSocket {
  int fd = -1;
  uint64_t cookie = 0;  // the kernel's name of the socket, which no other one gets
  std::string host = {};
  std::string peer = {};                 // host and port, as in ConnectionProgress
  ConnectionProgress::Signs signs = {};  // taken down by the limiter
  uint64_t heard_bytes = 0;              // received by the time of the last call or message
  uint64_t received = 0;                 // by the last look
  uint64_t held_back = 0;                // of these, since the last call or message
  uint64_t counted_bytes = 0;            // received when its streams were last to be counted
  uint64_t counted_at = 0;               // the look at which they were
  uint64_t streams = 0;                  // as counted then
  bool heard = false;                    // a call came of it
};

/// The kernel's cookie of the socket that the descriptor is now (SO_COOKIE); 0: it is none.
uint64_t SocketCookie(int fd);
/// Whether the descriptor is still that socket. It may be closed, and given to another, at any moment: a
/// look, no promise.
bool IsStillOpen(const OpenSocket& socket);

/// How many streams there are of the connections from these peers, in their order.
using CountStreams = std::function<std::vector<uint64_t>(const std::vector<std::string>& peers)>;

/// The connections of one port. Counts what was admitted, and looks which of it is gone only when a limit
/// seems to be reached, and then at most every kLookInterval: a flood buys no more work than that. Not
/// thread-safe.
class ConnectionLimiter {
 public:
  enum class Verdict : uint8_t { kAdmitted, kTooMany, kTooManyOfAddress };
  enum class Of : uint8_t { kBytes, kStreams };
  struct Violation {
    int fd = -1;
    Of of = Of::kBytes;
  };
  using Alive = std::function<bool(const OpenSocket&)>;
  static constexpr Duration kLookInterval = Seconds(0.1);
  /// Streams are counted where so much came since, or where there were many; at one look of no more than
  /// that. While connections are ended for their bytes: at one look in kLookInterval, and of fewer.
  static constexpr uint64_t kCountAfterBytes = uint64_t{64} << 10;
  static constexpr size_t kMostCounted = 512;
  static constexpr size_t kMostCountedInFlood = 64;
  /// What an honest client may have under way without its fault: a message, and what HTTP/2 adds to it.
  static constexpr uint64_t kOneMessage = uint64_t{3} << 20;
  static constexpr Duration kLongestEnding = Seconds(5);

  explicit ConnectionLimiter(const ConnectionLimits& limits, Alive alive = IsStillOpen)
      : limits_(limits), alive_(std::move(alive)) {}

  /// Counts the connection when there is room for it.
  Verdict Admit(const OpenSocket& socket, MonoTime now);
  /// Forgets the oldest connection of the address that has most of them; the caller ends it. -1: there is
  /// none.
  int ForgetOldest();
  /// Forgets what is gone; how many there are.
  size_t Count(MonoTime now);
  /// Those that have brought too many bytes without saying anything, of which `received` tells how many there
  /// were so far, and those with too many streams, as counted by `count` (may be empty). They are forgotten
  /// here; the caller ends them.
  std::vector<Violation> TakeViolations(const std::function<uint64_t(int fd)>& received,
                                        const CountStreams& count, MonoTime now);
  /// Bytes of connections that Greedy named and whose descriptors are not closed yet: their memory is still
  /// taken. A connection counts for kLongestEnding at most.
  uint64_t EndingBytes(MonoTime now);
  /// That is so much that no new connection should be taken until it is less.
  bool Full(MonoTime now);
  /// The peers of those that were found gone since the last question, of which no call ever came.
  std::vector<std::string> TakeUnheard() { return std::exchange(unheard_, {}); }
  /// Those that were admitted and not forgotten; some may be gone.
  const std::vector<OpenSocket>& open() const { return open_; }
  /// After it Greedy is to be asked again: sooner while a connection has an eighth of what it may have, and
  /// later where there are so many that looking itself would cost something (a microsecond or two for each).
  Duration UntilNextLook() const;

 private:
  /// Bytes or streams of one connection.
  struct Amount {
    uint64_t amount = 0;
    int fd = -1;
    const std::string* host = nullptr;  // in open_
    bool useful = false;                // ended last
  };
  /// A connection that was ended and that somebody still serves.
  struct Ending {
    OpenSocket socket;
    uint64_t bytes = 0;
    MonoTime since;
  };
  using Amounts = std::vector<Amount>;

  static void End(Of of, int fd, std::vector<Violation>& violations);
  static void AddLargestViolations(Of of, Amounts amounts, uint64_t limit, uint64_t limit_of_all,
                                   std::vector<Violation>& violations);
  void Forget(const std::vector<Violation>& violations, MonoTime now);
  uint64_t LeftBeside(uint64_t ending) const;
  static uint64_t Sum(const Amounts& amounts);
  static uint64_t Most(const Amounts& amounts);
  void CountThem(size_t at_most, const CountStreams& count);
  Verdict Judge(const std::string& host) const;
  void Look(MonoTime now);
  void ForgetGone();
  void Recount();

  const ConnectionLimits limits_;
  const Alive alive_;
  std::vector<OpenSocket> open_;
  std::map<std::string, size_t> by_host_;
  std::vector<std::string> unheard_;
  std::vector<Ending> ending_;
  MonoTime looked_{};
  MonoTime counted_{};
  bool ever_looked_ = false;
  bool under_pressure_ = false;
  uint64_t looks_ = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_CONNECTION_LIMITER_H_
