#include "worker/island/island.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/bind_address.h"
#include "common/status.h"
#include "common/thread.h"
#include "worker/island/frame_socket.h"
#include "worker/island/gathering.h"

namespace atl {
namespace {

constexpr Duration kMargin = Seconds(5);  // rank 0 gives up first, with the better message

/// What to do if ranks do not come to rank 0.
std::string RemedyForMissing(const IslandPlace& place) {
  if (place.supervised) return "see their log";
  const std::string start =
      absl::StrFormat("start them with the same address %s, or fewer ranks. ", PlaceText(place));
  if (!IsLoopback({.host = place.store_host})) {
    return start + "If they run, open all TCP ports between the hosts";
  }
  return absl::StrFormat("%s%s means each host itself: ranks on other hosts need another address of this one",
                         start, place.store_host);
}

/// Whether `host`, the address that rank 0 announced in the store, is not rank 0's on this host.
bool MeansAnotherHost(const IslandPlace& place, const std::string& host) {
  return host != place.store_host && (IsLoopback({.host = host}) || !CheckHostName(host).ok());
}

/// What to do if rank 0 is not reached at `host`.
std::string RemedyFor(const IslandPlace& place, const std::string& host) {
  if (MeansAnotherHost(place, host)) {
    return absl::StrFormat(
        "Rank 0 was started with the address %s, which does not mean its host here. Give all ranks an "
        "address "
        "of rank 0's host that the others reach, as this one has: %s (--island HOST:PORT, MASTER_ADDR)",
        host, place.store_host);
  }
  return "Open all TCP ports between the hosts of an island, not only that of the store: rank 0, Gloo and "
         "NCCL "
         "listen at ports that the system chooses. If they are open, the island is complete without this "
         "process: end it, or the one that has its rank";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Island>> Island::Form(IslandOptions options) {
  ATOLL_RETURN_IF_ERROR(CheckRankSupport());
  std::unique_ptr<Island> island(new Island(std::move(options)));
  ATOLL_RETURN_IF_ERROR(island->is_first() ? island->Gather() : island->Join());
  return island;
}

Island::Island(IslandOptions options)
    : options_(std::move(options)),
      store_({.place = options_.place,
              .patience = patience(),
              .log = options_.log,
              .check_wait = [this](const std::string& what) { return CheckWait(what); }}) {}

Duration Island::patience() const { return options_.timeout * (options_.place.supervised ? 1 : 10); }

absl::Status Island::CheckWait(const std::string& what) const {
  if (options_.asked_to_end == nullptr || !options_.asked_to_end()) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrFormat("was asked to end while it waited for %s at %s", what, PlaceText(options_.place)));
}

PeerLinkOptions Island::LinkTo(uint32_t rank) const {
  return {.rank = rank,
          .timeout = options_.timeout,
          .on_lost =
              [this](uint32_t lost, const absl::Status& cause) {
                options_.on_broken(absl::UnavailableError(
                    absl::StrFormat("rank %d is lost: %s", lost, std::string(cause.message()))));
              },
          .on_drain = options_.on_drain};
}

absl::Status Island::CreateGroup(const std::string& address) {
  ATOLL_ASSIGN_OR_RETURN(group_, RankGroup::Create(store_.store(), {.rank = options_.place.rank,
                                                                    .size = options_.place.size,
                                                                    .address = address,
                                                                    .device = options_.device,
                                                                    .timeout = options_.timeout,
                                                                    .on_broken = options_.on_broken}));
  return absl::OkStatus();
}

absl::Status Island::Connect(const std::string& address) {
  const absl::Status connected = CreateGroup(address);
  // Nothing asks it again, and what becomes of the connection is of no interest any more.
  store_.Leave();
  if (connected.ok() || absl::IsUnimplemented(connected) || absl::IsInvalidArgument(connected))
    return connected;
  // A rank has ended or is frozen since it was admitted: all start again.
  return absl::UnavailableError(
      absl::StrCat("the ranks have not connected: ", std::string(connected.message())));
}

absl::Status Island::Gather() {
  const IslandPlace& place = options_.place;
  ATOLL_RETURN_IF_ERROR(store_.Open());
  ATOLL_ASSIGN_OR_RETURN(const auto listener, FrameListener::Listen(place.store_host));
  ATOLL_RETURN_IF_ERROR(store_.SetAddress({.host = place.store_host, .port = listener->port()}));
  Gathering gathering(options_.facts, options_.log);
  const MonoTime deadline = SteadyNow() + patience();
  MonoTime says_so = SteadyNow() + kRankSaysSo;
  while (true) {
    ATOLL_RETURN_IF_ERROR(gathering.Look());
    if (gathering.complete()) break;
    ATOLL_RETURN_IF_ERROR(CheckWait(gathering.Missing()));
    ATOLL_ASSIGN_OR_RETURN(auto socket, listener->Accept(Seconds(0.1), options_.timeout));
    if (socket != nullptr) gathering.Add(std::move(socket));
    const MonoTime now = SteadyNow();
    if (now >= deadline) {
      return absl::DeadlineExceededError(absl::StrFormat("%s did not come within %g s: %s",
                                                         gathering.Missing(), ToSeconds(patience()),
                                                         RemedyForMissing(place)));
    }
    if (now < says_so) continue;
    says_so = now + kRankSaysSo;
    options_.log.Info("waits for " + gathering.Missing(), {{"at", PlaceText(place)}});
  }
  const std::string own_address = gathering.ReachedAt();
  std::vector<std::unique_ptr<PeerLink>> links;
  for (auto& socket : gathering.Take()) {
    (void)socket->Send(FrameType::kWelcome, own_address);
    const auto rank = static_cast<uint32_t>(links.size() + 1);
    links.push_back(std::make_unique<PeerLink>(std::move(socket), LinkTo(rank)));
  }
  followers_ = std::make_unique<Followers>(std::move(links));
  return Connect(own_address);
}

absl::StatusOr<std::unique_ptr<FrameSocket>> Island::ReachFirst() {
  // Rank 0 listens until all ranks are there. When one of them comes back before its loss is noticed, the
  // port is closed, and the next life has another one, mostly in another store.
  const MonoTime deadline = SteadyNow() + patience();
  MonoTime says_so = SteadyNow();
  auto first = store_.AwaitAddress();
  while (true) {
    ATOLL_RETURN_IF_ERROR(first.status());
    ATOLL_RETURN_IF_ERROR(CheckWait("rank 0"));
    const Duration patience = std::clamp<Duration>(deadline - SteadyNow(), kRankLooksAgain, kRankSaysSo);
    auto socket = FrameSocket::Connect(first->host, first->port, patience, options_.timeout);
    if (socket.ok()) return socket;
    const std::string cause(socket.status().message());
    const bool silent = absl::IsDeadlineExceeded(socket.status());
    if (SteadyNow() >= deadline || (!silent && MeansAnotherHost(options_.place, first->host))) {
      return absl::UnavailableError(absl::StrFormat("cannot reach rank 0 at the port that it chose: %s. %s",
                                                    cause, RemedyFor(options_.place, first->host)));
    }
    if (SteadyNow() >= says_so) {
      says_so = SteadyNow() + kRankSaysSo;
      options_.log.Info(
          silent ? "waits for rank 0 to answer at the port that it chose"
                 : "waits for rank 0 to take ranks again: it notices a lost rank after --rank-timeout",
          {{"at", absl::StrCat(first->host, ":", first->port)}, {"cause", cause}});
    }
    if (!silent) SleepThisThread(kRankLooksAgain);
    first = store_.LookUpAddress();
    if (!first.ok()) first = store_.AwaitAddress();
  }
}

absl::StatusOr<std::string> Island::AwaitWelcome(FrameSocket& socket) const {
  ATOLL_RETURN_IF_ERROR(socket.Send(FrameType::kHello, EncodeRankFacts(options_.facts)));
  const MonoTime deadline = SteadyNow() + patience() + kMargin;
  MonoTime says_so = SteadyNow() + kRankSaysSo;
  while (true) {
    ATOLL_RETURN_IF_ERROR(CheckWait("the other ranks"));
    // A rank that shows no life loses its place to a new process with its number. That the connection has
    // ended is seen below.
    (void)socket.Send(FrameType::kHeartbeat, "");
    ATOLL_ASSIGN_OR_RETURN(const auto frame, socket.Receive(kRankLooksAgain));
    if (frame.has_value() && frame->type == FrameType::kRefusal) {
      return absl::InvalidArgumentError(frame->body);
    }
    if (frame.has_value()) return frame->body;
    const MonoTime now = SteadyNow();
    if (now >= deadline) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "rank 0 at %s has taken this rank, but does not begin: its log says for whom it waits",
          PlaceText(options_.place)));
    }
    if (now < says_so) continue;
    says_so = now + kRankSaysSo;
    options_.log.Info("waits for rank 0, which waits for the others", {{"at", PlaceText(options_.place)}});
  }
}

absl::Status Island::Join() {
  const MonoTime gives_up = SteadyNow() + patience();
  std::unique_ptr<FrameSocket> socket;
  absl::StatusOr<std::string> welcome;
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(socket, ReachFirst());
    welcome = AwaitWelcome(*socket);
    if (!absl::IsUnavailable(welcome.status())) break;
    if (options_.place.supervised || SteadyNow() >= gives_up) {
      return absl::UnavailableError(
          absl::StrFormat("rank 0 at %s ended before all ranks were there: see its log, and start it again",
                          PlaceText(options_.place)));
    }
    options_.log.Warning("rank 0 ended before all ranks were there; waits for its next life",
                         {{"at", PlaceText(options_.place)}});
    store_.Leave();
    SleepThisThread(kRankLooksAgain);
  }
  ATOLL_RETURN_IF_ERROR(welcome.status());
  on_host_of_first_ = socket->within_host();
  std::string own_address = socket->local_address();
  // On rank 0's host: the others reach both at the same address.
  if (IsLoopback({.host = own_address}) && !welcome->empty()) own_address = *welcome;
  first_ = std::make_unique<PeerLink>(std::move(socket), LinkTo(0));
  return Connect(own_address);
}

}  // namespace atl
