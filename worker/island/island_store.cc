#include "worker/island/island_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/bind_address.h"
#include "common/digest.h"
#include "common/status.h"
#include "common/thread.h"
#include "worker/island/frame_socket.h"

namespace atl {
namespace {

constexpr Duration kConnects = Seconds(2);    // one try; LibTorch 2.6 takes up to three times as long
constexpr Duration kAnswers = Seconds(1);     // one question to the store
constexpr Duration kStoreEnds = Seconds(15);  // an ending rank 0 closes connections, longer on a busy host
constexpr char kAddressKey[] = "rank0";
constexpr char kMarkKey[] = "host";  // tells the store of this process from that of another rank 0

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

/// Whether a store answers. DeadlineExceeded: nothing does. Aborted: this is no store, or one that has ended.
absl::Status CheckAnswers(RankStore& store) {
  const absl::Status pinged = store.Ping(kAnswers);
  if (pinged.ok()) return pinged;
  if (absl::IsDeadlineExceeded(pinged)) {
    return absl::DeadlineExceededError("what is there takes connections, but does not answer");
  }
  const char* const what =
      SaysClosed(pinged.message()) ? "it closes connections" : "its answers are no store's";
  return absl::AbortedError(absl::StrFormat("%s (%s)", what, std::string(pinged.message())));
}

/// The value of a key that rank 0 sets. DeadlineExceeded: there is none yet. Else as CheckAnswers.
absl::StatusOr<std::string> Ask(RankStore& store, const char* key) {
  ATOLL_RETURN_IF_ERROR(CheckAnswers(store));
  auto value = store.Get(key, kAnswers);
  if (absl::IsDeadlineExceeded(value.status())) {
    return absl::DeadlineExceededError("the store there has no rank 0 yet");
  }
  if (!value.ok()) return absl::AbortedError(value.status().message());
  return value;
}

absl::StatusOr<FirstAddress> ParseAddress(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '|');
  uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) {
    return absl::AbortedError("it has no address of rank 0");
  }
  return FirstAddress{.host = parts[0], .port = static_cast<uint16_t>(port)};
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

bool SaysClosed(absl::string_view error) {
  // Newer LibTorches greet the store as they connect, and find it closed then.
  for (const char* const said : {"reset by peer", "Broken pipe", "likely closed"}) {
    if (absl::StrContains(error, said)) return true;
  }
  return false;
}

absl::Status IslandStore::Open() {
  const IslandPlace& place = options_.place;
  if (place.hosts_store) return Host();
  if (!place.supervised) {
    options_.log.Info(
        "uses the store of torchrun's agent. If the ranks do not find one another, torchrun's PyTorch has "
        "another version than this worker's LibTorch: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun",
        {{"at", PlaceText(place)}});
  }
  return Await("the store of the ranks", [this]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(store_, Connect());
    absl::Status answers = CheckAnswers(*store_);
    if (!answers.ok()) Leave();
    return answers;
  });
}

absl::Status IslandStore::Host() {
  // c10d tries for minutes to listen on a port that is taken.
  ATOLL_RETURN_IF_ERROR(CheckStorePort(options_.place));
  // This process reaches its own store over the loopback, whatever the address leads to.
  ATOLL_ASSIGN_OR_RETURN(auto hosted, RankStore::Open({.host = "127.0.0.1",
                                                       .port = options_.place.store_port,
                                                       .hosts_store = true,
                                                       .prefix = Prefix(),
                                                       .timeout = kConnects}));
  const std::string mark = absl::BytesToHexString(RandomBytes(8));
  ATOLL_RETURN_IF_ERROR(hosted->Set(kMarkKey, mark));
  ATOLL_RETURN_IF_ERROR(Await("its own address", [&] { return FindHosted(mark); }));
  store_ = std::move(hosted);
  return absl::OkStatus();
}

absl::Status IslandStore::FindHosted(const std::string& mark) const {
  ATOLL_ASSIGN_OR_RETURN(const auto found, Connect());
  ATOLL_ASSIGN_OR_RETURN(const std::string its_mark, Ask(*found, kMarkKey));
  if (its_mark == mark) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "rank 0 is there twice: %s is the address of another rank 0, not of this host. Give each process a "
      "rank "
      "of its own, and all of them the address of the host with rank 0 (--rank and --island, or RANK and "
      "MASTER_ADDR)",
      PlaceText(options_.place)));
}

absl::Status IslandStore::SetAddress(const FirstAddress& address) {
  const absl::Status set = store_->Set(kAddressKey, absl::StrCat(address.host, "|", address.port));
  if (set.ok()) return set;
  return absl::UnavailableError(NotTheStore(options_.place, std::string(set.message())));
}

absl::StatusOr<FirstAddress> IslandStore::AwaitAddress() {
  FirstAddress address;
  ATOLL_RETURN_IF_ERROR(Await("rank 0", [this, &address]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(address, LookUpAddress());
    return absl::OkStatus();
  }));
  return address;
}

absl::StatusOr<FirstAddress> IslandStore::LookUpAddress() {
  const auto look = [this]() -> absl::StatusOr<FirstAddress> {
    if (store_ == nullptr) {
      ATOLL_ASSIGN_OR_RETURN(store_, Connect());
    }
    ATOLL_ASSIGN_OR_RETURN(const std::string text, Ask(*store_, kAddressKey));
    return ParseAddress(text);
  };
  auto address = look();
  if (!address.ok()) Leave();
  return address;
}

std::string IslandStore::Prefix() const { return absl::StrCat("atoll/", options_.place.attempt); }

absl::StatusOr<std::shared_ptr<RankStore>> IslandStore::Connect() const {
  const IslandPlace& place = options_.place;
  // Whatever the cause, c10d says after two seconds that the socket has timed out.
  if (place.store_file.empty()) {
    ATOLL_RETURN_IF_ERROR(
        FrameSocket::Connect(place.store_host, place.store_port, kConnects, kConnects).status());
  }
  auto opened = RankStore::Open({.host = place.store_host,
                                 .port = place.store_port,
                                 .prefix = Prefix(),
                                 .file = place.store_file,
                                 .timeout = kConnects});
  if (opened.ok() || !SaysClosed(opened.status().message())) return opened;
  return absl::AbortedError(opened.status().message());
}

absl::Status IslandStore::Await(const std::string& what, absl::FunctionRef<absl::Status()> look) const {
  const MonoTime deadline = SteadyNow() + options_.patience;
  MonoTime says_so = SteadyNow();
  ClosedConnections closed;
  absl::Status cause;
  while (true) {
    ATOLL_RETURN_IF_ERROR(options_.check_wait(what));
    const MonoTime begin = SteadyNow();
    const absl::Status looked = look();
    if (looked.ok() || absl::IsAlreadyExists(looked) || absl::IsInvalidArgument(looked)) return looked;
    const MonoTime now = SteadyNow();
    if (absl::IsAborted(looked)) closed.Add(now);
    // The last look may have found another program too busy to take a connection.
    if (absl::IsAborted(looked) || !closed.Lately(now)) cause = looked;
    const bool is_another = !options_.place.hosts_store && closed.Lasted() >= kStoreEnds;
    if (now >= deadline || is_another) return NotThere(cause);
    if (now >= says_so) {
      options_.log.Info("waits for " + what,
                        {{"at", PlaceText(options_.place)}, {"cause", std::string(looked.message())}});
      says_so = now + kRankSaysSo;
    }
    // A name of a cluster's DNS may come seconds after the pod that has it.
    SleepThisThread(std::max<Duration>(kRankLooksAgain - (now - begin), Duration(0)));
  }
}

absl::Status IslandStore::NotThere(const absl::Status& cause) const {
  const IslandPlace& place = options_.place;
  const std::string why(absl::StripSuffix(cause.message(), "."));
  const double waited_s = ToSeconds(options_.patience);
  if (place.hosts_store) {
    return absl::DeadlineExceededError(
        absl::StrFormat("rank 0 hosts the store of its island, but has not reached it at %s within %g s: %s. "
                        "Give all ranks an address that means this host everywhere (--island HOST:PORT, "
                        "MASTER_ADDR and MASTER_PORT)",
                        PlaceText(place), waited_s, why));
  }
  if (absl::IsAborted(cause)) return absl::UnavailableError(NotTheStore(place, why));
  if (place.supervised) {
    return absl::DeadlineExceededError(
        absl::StrFormat("rank 0 has not begun within %g s: see its log", waited_s));
  }
  return absl::DeadlineExceededError(absl::StrFormat(
      "rank 0 has not come to %s within %g s: %s. Start it there, or give all ranks the address where it is "
      "(--island HOST:PORT, MASTER_ADDR and MASTER_PORT)",
      PlaceText(place), waited_s, why));
}

}  // namespace atl
