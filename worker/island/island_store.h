#ifndef ATOLL_WORKER_ISLAND_ISLAND_STORE_H_
#define ATOLL_WORKER_ISLAND_ISLAND_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/log.h"
#include "worker/island/placement.h"
#include "worker/torch/rank_group.h"

namespace atl {

inline constexpr Duration kRankSaysSo = Seconds(5);      // how often a rank says for whom it waits
inline constexpr Duration kRankLooksAgain = Seconds(1);  // how often it looks whether it was asked to end

/// Where the ranks of this island find each other: HOST:PORT, or a file.
std::string PlaceText(const IslandPlace& place);

/// What a rank says when it finds another program where the store should be, or a store that has ended.
std::string NotTheStore(const IslandPlace& place, const std::string& cause);

/// Whether an error of the store says that the other side has closed the connection.
bool SaysClosed(absl::string_view error);

/// Where rank 0 takes the other ranks.
struct FirstAddress {
  std::string host;
  uint16_t port = 0;
};

struct IslandStoreOptions {
  IslandPlace place;
  Duration patience;  // of each wait
  Logger log;
  /// Cancelled when the process was asked to end while it waits for this.
  std::function<absl::Status(const std::string& what)> check_wait;
};

/// Finds the store of an island, again in each life of rank 0. A program that closes connections is taken for
/// a rank 0 that is ending, and for another program when it closes them for 15 s. Not thread-safe.
class IslandStore {
 public:
  explicit IslandStore(IslandStoreOptions options) : options_(std::move(options)) {}

  /// For rank 0: makes the store where this process hosts it, and waits until it is reached at the address
  /// that the others have. AlreadyExists: the port is in use. InvalidArgument: another rank 0 is at the
  /// address. DeadlineExceeded: nobody answers, or a program that is no store. Unavailable: another program
  /// closes connections. Cancelled: asked to end.
  absl::Status Open();
  /// For rank 0, after Open.
  absl::Status SetAddress(const FirstAddress& address);

  /// For the others: waits for the address that rank 0 has set, and says every few seconds so. Errors: as
  /// Open, without the first two.
  absl::StatusOr<FirstAddress> AwaitAddress();
  /// The address that rank 0 has set, without a wait of more than some seconds. DeadlineExceeded: none is
  /// set, or nobody answers. Aborted: what answers closed the connection, or is no store. After an error the
  /// next call looks for another store.
  absl::StatusOr<FirstAddress> LookUpAddress();

  /// The open store. Null: the last call failed.
  const std::shared_ptr<RankStore>& store() const { return store_; }
  /// Ends the connection.
  void Leave() { store_.reset(); }

 private:
  absl::Status Host();
  std::string Prefix() const;
  /// Whether the store that answers at the address of the island is the one that this process hosts.
  absl::Status FindHosted(const std::string& mark) const;
  absl::StatusOr<std::shared_ptr<RankStore>> Connect() const;
  /// Repeats `look` until it returns anything but Aborted, DeadlineExceeded and Unavailable, until it is
  /// Aborted for 15 s (not where this process hosts the store), or until the patience ends.
  absl::Status Await(const std::string& what, absl::FunctionRef<absl::Status()> look) const;
  absl::Status NotThere(const absl::Status& cause) const;

  const IslandStoreOptions options_;
  std::shared_ptr<RankStore> store_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_ISLAND_STORE_H_
