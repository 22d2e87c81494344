#ifndef ATOLL_WORKER_ISLAND_GATHERING_H_
#define ATOLL_WORKER_ISLAND_GATHERING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/log.h"
#include "worker/island/agreement.h"
#include "worker/island/frame_socket.h"

namespace atl {

/// The connections of rank 0 to the other ranks, until all are there. Nothing here waits: a connection that
/// says nothing delays no other. Used by one thread.
class Gathering {
 public:
  struct Limits {
    Duration greeting = Seconds(5);  // until the first frame of a connection
    /// A waiting rank shows each second that it lives. One that did not, for this long beside a new process
    /// with its number, has lost its place: its host is frozen, or gone.
    Duration silence = Seconds(5);
  };

  /// `own`: of rank 0.
  Gathering(RankFacts own, Logger log) : Gathering(std::move(own), std::move(log), Limits()) {}
  Gathering(RankFacts own, Logger log, Limits limits);

  /// A connection that has said nothing yet.
  void Add(std::unique_ptr<FrameSocket> socket);

  /// Reads what has come. InvalidArgument when a process cannot be a rank of this island: all that are there
  /// have been told the same.
  absl::Status Look();

  bool complete() const;
  /// "ranks 1, 2 of 3".
  std::string Missing() const;
  /// This host's address as the other ranks see it. When complete.
  std::string ReachedAt() const;
  /// Of rank 1, 2 and so on. When complete; this object is empty then.
  std::vector<std::unique_ptr<FrameSocket>> Take();

 private:
  struct Connection {
    std::unique_ptr<FrameSocket> socket;
    std::optional<RankFacts> facts;  // once it has greeted
    MonoTime came;
    MonoTime greeted;
    MonoTime heard;  // its last frame
  };

  /// Whether `connection` is still there.
  static bool Hear(Connection& connection);
  /// The first frame of a newcomer. False: it is none of ours, and goes.
  bool Greet(Connection& newcomer);
  /// Gives a newcomer its place, or leaves it waiting.
  absl::Status Place(Connection& newcomer);
  absl::Status RefuseAll(absl::Status reason);

  const RankFacts own_;
  const Logger log_;
  const Limits limits_;
  std::vector<Connection> admitted_;   // by rank, 0 empty
  std::vector<Connection> newcomers_;  // in the order in which they came
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_GATHERING_H_
