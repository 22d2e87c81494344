#ifndef ATOLL_WORKER_ISLAND_ISLAND_STORE_H_
#define ATOLL_WORKER_ISLAND_ISLAND_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

  /// Waits for the store, and says every few seconds for whom. AlreadyExists: the port is in use (rank 0).
  /// DeadlineExceeded: nobody answers. Unavailable: another program answers. Cancelled: asked to end.
  absl::Status Open();
  /// Waits for the address that rank 0 has set. Opens the store if it is not open or is gone. Errors: as
  /// Open.
  absl::StatusOr<std::string> AwaitAddress();
  /// The address that rank 0 has set in the open store. An error: in that store there is none any more.
  absl::StatusOr<std::string> LookUpAddress() { return store_->Get(kAddressKey, kRankLooksAgain); }
  /// The next call that waits looks for another store.
  void Leave() { store_.reset(); }

  /// For rank 0. InvalidArgument: another rank 0 has set its address.
  absl::Status SetAddress(const std::string& address);
  /// The open store.
  const std::shared_ptr<RankStore>& store() const { return store_; }

 private:
  static constexpr char kAddressKey[] = "rank0";

  /// Connects, once. Aborted: what answers there closed the connection.
  absl::Status Reach();
  /// Repeats `look` until it succeeds, until it is Aborted for 15 s, or until the patience ends.
  absl::Status Await(const std::string& what, absl::FunctionRef<absl::Status()> look) const;
  absl::Status NotThere(const absl::Status& cause) const;

  const IslandStoreOptions options_;
  std::shared_ptr<RankStore> store_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_ISLAND_ISLAND_STORE_H_
