#include "worker/island/island_store.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/bind_address.h"
#include "common/status.h"
#include "common/thread.h"
#include "worker/island/frame_socket.h"

namespace atl {
namespace {

constexpr Duration kConnects = Seconds(2);    // one try; LibTorch 2.6 takes up to three times as long
constexpr Duration kStoreEnds = Seconds(15);  // an ending rank 0 closes connections, longer on a busy host

/// Whether a try to reach the store found a program that closed the connection: newer LibTorches greet the
/// store as they connect.
bool WasClosed(const absl::Status& tried) {
  for (const char* const said : {"reset by peer", "Broken pipe", "likely closed"}) {
    if (absl::StrContains(tried.message(), said)) return true;
  }
  return false;
}

absl::Status CheckStorePort(const IslandPlace& place) {
  const absl::Status bindable = CheckBindable({.host = "0.0.0.0", .port = place.store_port});
  if (bindable.ok()) return absl::OkStatus();
  const bool in_use = absl::IsUnavailable(bindable);
  const std::string message = absl::StrFormat(
      "rank 0 cannot host the store of its island on port %d: %s, or give all ranks another port "
      "(MASTER_PORT, or --island HOST:PORT)",
      place.store_port,
      in_use ? "another process uses it; end that process" : std::string(bindable.message()));
  return absl::Status(in_use ? absl::StatusCode::kAlreadyExists : bindable.code(), message);
}

/// For how long, without a longer pause, connections have been closed.
class ClosedConnections {
 public:
  void Add(MonoTime now) {
    if (!Lately(now)) first_ = now;
    last_ = now;
  }
  Duration Lasted() const { return last_.has_value() ? *last_ - first_ : Seconds(0); }
  bool Lately(MonoTime now) const { return last_.has_value() && now - *last_ <= kStoreEnds; }

 private:
  MonoTime first_;
  std::optional<MonoTime> last_;
};

}  // namespace

std::string PlaceText(const IslandPlace& place) {
  if (!place.store_file.empty()) return place.store_file;
  return absl::StrCat(place.store_host, ":", place.store_port);
}

std::string NotTheStore(const IslandPlace& place, const std::string& cause) {
  if (!place.store_file.empty()) {
    return absl::StrFormat("the file %s, where the ranks find each other, is damaged or gone: %s",
                           place.store_file, cause);
  }
  return absl::StrFormat(
      "what answers at %s is not the store of this island, or has ended: %s. Give all ranks the address "
      "where rank 0 is (--island HOST:PORT, MASTER_ADDR and MASTER_PORT). Below torchrun, its PyTorch may "
      "have another version than this worker's LibTorch: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for it",
      PlaceText(place), cause);
}

absl::Status IslandStore::Open() {
  const IslandPlace& place = options_.place;
  // c10d tries for minutes to listen on a port that is taken.
  if (place.hosts_store) ATOLL_RETURN_IF_ERROR(CheckStorePort(place));
  if (place.rank == 0 && !place.hosts_store && !place.supervised) {
    options_.log.Info(
        "uses the store of torchrun's agent. If the ranks do not find one another, torchrun's PyTorch has "
        "another version than this worker's LibTorch: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun",
        {{"at", PlaceText(place)}});
  }
  return Await(place.hosts_store ? "its own address" : "rank 0", [this] { return Reach(); });
}

absl::StatusOr<std::string> IslandStore::AwaitAddress() {
  std::string address;
  const auto look = [this, &address]() -> absl::Status {
    ATOLL_RETURN_IF_ERROR(Reach());
    auto looked_up = LookUpAddress();
    if (looked_up.ok()) {
      address = *std::move(looked_up);
      return absl::OkStatus();
    }
    if (absl::IsDeadlineExceeded(looked_up.status())) return looked_up.status();
    Leave();
    return absl::AbortedError(looked_up.status().message());
  };
  ATOLL_RETURN_IF_ERROR(Await("rank 0", look));
  return address;
}

absl::Status IslandStore::SetAddress(const std::string& address) {
  // Torchrun's agent keeps the store of its ranks' lives, and a file is the supervisor's.
  if (options_.place.hosts_store) {
    ATOLL_ASSIGN_OR_RETURN(const bool has_another, store_->Has(kAddressKey));
    if (has_another) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "rank 0 is there twice: %s is the address of another rank 0, not of this host. Give each process a "
          "rank of its own, and all of them the address of the host with rank 0 (--rank and --island, or "
          "RANK "
          "and MASTER_ADDR)",
          PlaceText(options_.place)));
    }
  }
  return store_->Set(kAddressKey, address);
}

absl::Status IslandStore::Reach() {
  if (store_ != nullptr) return absl::OkStatus();
  const IslandPlace& place = options_.place;
  // c10d says of a name that nobody knows that the socket has timed out.
  if (place.store_file.empty()) ATOLL_RETURN_IF_ERROR(CheckHostName(place.store_host));
  auto opened = RankStore::Open({.host = place.store_host,
                                 .port = place.store_port,
                                 .hosts_store = place.hosts_store,
                                 .prefix = absl::StrCat("atoll/", place.attempt),
                                 .file = place.store_file,
                                 .timeout = kConnects});
  if (opened.ok()) {
    store_ = *std::move(opened);
    return absl::OkStatus();
  }
  return WasClosed(opened.status()) ? absl::AbortedError(opened.status().message()) : opened.status();
}

absl::Status IslandStore::Await(const std::string& what, absl::FunctionRef<absl::Status()> look) const {
  const MonoTime deadline = SteadyNow() + options_.patience;
  MonoTime says_so = SteadyNow();
  ClosedConnections closed;
  absl::Status cause;
  while (true) {
    ATOLL_RETURN_IF_ERROR(options_.check_wait(what));
    const absl::Status looked = look();
    if (looked.ok() || absl::IsAlreadyExists(looked)) return looked;
    const MonoTime now = SteadyNow();
    if (absl::IsAborted(looked)) closed.Add(now);
    // The last look may have found another program too busy to take a connection.
    if (absl::IsAborted(looked) || !closed.Lately(now)) cause = looked;
    if (now >= deadline || closed.Lasted() >= kStoreEnds) return NotThere(cause);
    if (now >= says_so) {
      options_.log.Info("waits for " + what,
                        {{"at", PlaceText(options_.place)}, {"cause", std::string(looked.message())}});
      says_so = now + kRankSaysSo;
    }
    // A name of a cluster's DNS may come seconds after the pod that has it.
    if (store_ == nullptr) SleepThisThread(kRankLooksAgain);
  }
}

absl::Status IslandStore::NotThere(const absl::Status& cause) const {
  const std::string at = PlaceText(options_.place);
  const double waited_s = ToSeconds(options_.patience);
  if (options_.place.hosts_store) {
    return absl::DeadlineExceededError(
        absl::StrFormat("rank 0 hosts the store of its island, but has not reached it at %s within %g s: %s. "
                        "Give all ranks an address that means this host everywhere (--island HOST:PORT, "
                        "MASTER_ADDR and MASTER_PORT)",
                        at, waited_s, std::string(cause.message())));
  }
  if (absl::IsAborted(cause)) {
    return absl::UnavailableError(NotTheStore(options_.place, std::string(cause.message())));
  }
  if (store_ != nullptr) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "rank 0 has not come to %s within %g s, although something takes connections there: start rank 0 "
        "with the same address, and end what is not rank 0",
        at, waited_s));
  }
  return absl::DeadlineExceededError(absl::StrFormat(
      "rank 0 has not come to %s within %g s: start it there, or give all ranks the address where it is "
      "(--island HOST:PORT, MASTER_ADDR and MASTER_PORT)",
      at, waited_s));
}

}  // namespace atl
