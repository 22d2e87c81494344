#include "worker/island/island.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/bind_address.h"
#include "common/status.h"
#include "common/thread.h"

namespace atl {
namespace {

constexpr Duration kSaysSo = Seconds(5);    // how often a rank says for whom it waits
constexpr Duration kGreeting = Seconds(5);  // for the first frame of a connection
constexpr char kAddressKey[] = "rank0";

std::string PlaceText(const IslandPlace& place) {
  return absl::StrCat(place.store_host, ":", place.store_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Island>> Island::Form(IslandOptions options) {
  ATOLL_RETURN_IF_ERROR(CheckRankSupport());
  std::unique_ptr<Island> island(new Island(std::move(options)));
  ATOLL_RETURN_IF_ERROR(island->OpenStore());
  ATOLL_RETURN_IF_ERROR(island->is_first() ? island->Gather() : island->Join());
  return island;
}

Duration Island::patience() const { return options_.timeout * (options_.place.supervised ? 1 : 10); }

absl::Status Island::OpenStore() {
  const IslandPlace& place = options_.place;
  RankStoreOptions store{.host = place.store_host,
                         .port = place.store_port,
                         .hosts_store = place.hosts_store,
                         .prefix = absl::StrCat("atoll/", place.attempt),
                         .timeout = kSaysSo};
  if (place.hosts_store) {
    // c10d tries for minutes to listen on a port that is taken.
    ATOLL_RETURN_IF_ERROR(CheckStorePort(place));
    ATOLL_ASSIGN_OR_RETURN(store_, RankStore::Open(store));
    return absl::OkStatus();
  }
  if (place.rank == 0) {
    options_.log.Info(
        "uses the store of torchrun's agent. If the ranks do not find one another, torchrun's PyTorch has "
        "another "
        "version than this worker's LibTorch: set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun",
        {{"at", PlaceText(place)}});
  }
  const MonoTime deadline = SteadyNow() + patience();
  while (true) {
    auto opened = RankStore::Open(store);
    if (opened.ok()) {
      store_ = *std::move(opened);
      return absl::OkStatus();
    }
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "rank 0 has not come to %s within %g s: start it there, or give all ranks the address where it is "
          "(--island HOST:PORT, MASTER_ADDR and MASTER_PORT)",
          PlaceText(place), ToSeconds(patience())));
    }
    options_.log.Info("waits for rank 0", {{"at", PlaceText(place)}});
    SleepThisThread(Seconds(1));
  }
}

absl::Status Island::CheckStorePort(const IslandPlace& place) {
  const absl::Status bindable = CheckBindable({.host = "0.0.0.0", .port = place.store_port});
  if (bindable.ok() || absl::IsInvalidArgument(bindable)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrFormat("rank 0 cannot host the store of its island on port %d: another process uses it; end "
                      "that process, or give "
                      "all ranks another port (MASTER_PORT, or --island HOST:PORT)",
                      place.store_port));
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

absl::Status Island::Connect(const std::string& address) {
  ATOLL_ASSIGN_OR_RETURN(group_, RankGroup::Create(store_, {.rank = options_.place.rank,
                                                            .size = options_.place.size,
                                                            .address = address,
                                                            .device = options_.device,
                                                            .timeout = options_.timeout,
                                                            .on_broken = options_.on_broken}));
  return absl::OkStatus();
}

std::string Island::Missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 1; rank < options_.place.size; ++rank) {
    if (admitted_[rank] == nullptr) missing.push_back(rank);
  }
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "), " of ",
                      options_.place.size);
}

absl::Status Island::Gather() {
  const IslandPlace& place = options_.place;
  ATOLL_ASSIGN_OR_RETURN(const auto listener, FrameListener::Listen(place.store_host));
  ATOLL_RETURN_IF_ERROR(store_->Set(kAddressKey, absl::StrCat(place.store_host, "|", listener->port())));
  admitted_.resize(place.size);
  const MonoTime deadline = SteadyNow() + patience();
  MonoTime says_so = SteadyNow() + kSaysSo;
  const auto complete = [&] {
    return std::none_of(admitted_.begin() + 1, admitted_.end(), std::logical_not<>());
  };
  while (!complete()) {
    ATOLL_ASSIGN_OR_RETURN(auto socket, listener->Accept(Seconds(0.2), options_.timeout));
    if (socket != nullptr) ATOLL_RETURN_IF_ERROR(Admit(std::move(socket)));
    const MonoTime now = SteadyNow();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("%s did not come within %g s: start them with the same address %s, or fewer ranks",
                          Missing(), ToSeconds(patience()), PlaceText(place)));
    }
    if (now < says_so) continue;
    says_so = now + kSaysSo;
    options_.log.Info("waits for " + Missing(), {{"at", PlaceText(place)}});
  }
  std::vector<std::unique_ptr<PeerLink>> links;
  for (uint32_t rank = 1; rank < place.size; ++rank) {
    (void)admitted_[rank]->Send(FrameType::kWelcome, "");
    links.push_back(std::make_unique<PeerLink>(std::move(admitted_[rank]), LinkTo(rank)));
  }
  followers_ = std::make_unique<Followers>(std::move(links));
  return Connect(place.store_host);
}

absl::Status Island::Admit(std::unique_ptr<FrameSocket> socket) {
  const auto frame = socket->Receive(kGreeting);
  // A port scanner, or a rank that has ended again: nobody to answer.
  if (!frame.ok() || !frame->has_value() || (*frame)->type != FrameType::kHello) return absl::OkStatus();
  const auto facts = DecodeRankFacts((*frame)->body);
  absl::Status agreed = facts.ok() ? CheckAgreement(options_.facts, *facts) : facts.status();
  if (agreed.ok() && admitted_[facts->rank] != nullptr) {
    agreed = absl::InvalidArgumentError(absl::StrFormat(
        "rank %d is there twice, the second time as process %d on %s; give each process a rank of its own",
        facts->rank, facts->process, facts->host));
  }
  if (!agreed.ok()) {
    (void)socket->Send(FrameType::kRefusal, std::string(agreed.message()));
    for (const auto& other : admitted_) {
      if (other != nullptr) (void)other->Send(FrameType::kRefusal, std::string(agreed.message()));
    }
    return agreed;
  }
  admitted_[facts->rank] = std::move(socket);
  return absl::OkStatus();
}

absl::Status Island::Join() {
  ATOLL_ASSIGN_OR_RETURN(const std::string address, store_->Get(kAddressKey, patience()));
  const std::vector<std::string> parts = absl::StrSplit(address, '|');
  uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) {
    return absl::InternalError("the store has no address of rank 0: another program uses this store");
  }
  ATOLL_ASSIGN_OR_RETURN(auto socket,
                         FrameSocket::Connect(parts[0], static_cast<uint16_t>(port), options_.timeout));
  ATOLL_RETURN_IF_ERROR(socket->Send(FrameType::kHello, EncodeRankFacts(options_.facts)));
  const MonoTime deadline = SteadyNow() + patience() + kGreeting;
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const auto frame, socket->Receive(kSaysSo));
    if (frame.has_value() && frame->type == FrameType::kRefusal) {
      return absl::InvalidArgumentError(frame->body);
    }
    if (frame.has_value()) break;
    if (SteadyNow() >= deadline) return absl::DeadlineExceededError("rank 0 does not begin; see its log");
    options_.log.Info("waits for rank 0, which waits for the others", {{"at", PlaceText(options_.place)}});
  }
  const std::string own_address = socket->local_address();
  first_ = std::make_unique<PeerLink>(std::move(socket), LinkTo(0));
  return Connect(own_address);
}

}  // namespace atl
