#include "worker/island/gathering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/bind_address.h"
#include "common/status.h"

namespace atl {
namespace {

/// Connections without a place, beyond one for each rank: a port scanner's.
constexpr size_t kSpareConnections = 64;

}  // namespace

Gathering::Gathering(RankFacts own, Logger log, Limits limits)
    : own_(std::move(own)), log_(std::move(log)), limits_(limits), admitted_(own_.size) {}

void Gathering::Add(std::unique_ptr<FrameSocket> socket) {
  if (newcomers_.size() >= own_.size + kSpareConnections) {
    // Perhaps a scanner holds them all: the oldest one that has said nothing makes room.
    const auto silent = std::find_if(newcomers_.begin(), newcomers_.end(),
                                     [](const Connection& newcomer) { return !newcomer.facts.has_value(); });
    newcomers_.erase(silent == newcomers_.end() ? newcomers_.begin() : silent);
  }
  Connection newcomer;
  newcomer.socket = std::move(socket);
  newcomer.came = SteadyNow();
  newcomers_.push_back(std::move(newcomer));
}

bool Gathering::Hear(Connection& connection) {
  while (true) {
    const auto frame = connection.socket->Receive(Duration(0));
    if (!frame.ok()) return false;
    if (!frame->has_value()) return true;
    connection.heard = SteadyNow();
  }
}

bool Gathering::Greet(Connection& newcomer) {
  const auto frame = newcomer.socket->Receive(Duration(0));
  if (frame.ok() && !frame->has_value()) return SteadyNow() - newcomer.came < limits_.greeting;
  // A port scanner, or a rank that has ended again: nobody to answer.
  if (!frame.ok() || (*frame)->type != FrameType::kHello) return false;
  auto facts = DecodeRankFacts((*frame)->body);
  if (!facts.ok()) {
    // Another program may have found the port, so the island waits on.
    log_.Warning("refuses a connection: " + std::string(facts.status().message()));
    (void)newcomer.socket->Send(FrameType::kRefusal, std::string(facts.status().message()));
    return false;
  }
  newcomer.facts = *std::move(facts);
  newcomer.greeted = newcomer.heard = SteadyNow();
  return true;
}

absl::Status Gathering::RefuseAll(absl::Status reason) {
  for (const std::vector<Connection>* group : {&admitted_, &newcomers_}) {
    for (const Connection& one : *group) {
      if (one.socket == nullptr) continue;
      (void)one.socket->Send(FrameType::kRefusal, std::string(reason.message()));
    }
  }
  return reason;
}

absl::Status Gathering::Place(Connection& newcomer) {
  const RankFacts& facts = *newcomer.facts;
  if (absl::Status agreed = CheckAgreement(own_, facts); !agreed.ok()) return RefuseAll(std::move(agreed));
  Connection& place = admitted_[facts.rank];
  if (place.socket != nullptr) {
    if (place.heard > newcomer.greeted) {
      return RefuseAll(absl::InvalidArgumentError(
          absl::StrFormat("rank %d is there twice, as process %d on %s and as process %d on %s; give each "
                          "process a rank of its own",
                          facts.rank, place.facts->process, place.facts->host, facts.process, facts.host)));
    }
    if (SteadyNow() - newcomer.greeted < limits_.silence) return absl::OkStatus();
    log_.Warning(absl::StrFormat("rank %d has come again, and its first process is silent: the second one "
                                 "takes its place",
                                 facts.rank),
                 {{"first", absl::StrFormat("process %d on %s", place.facts->process, place.facts->host)},
                  {"second", absl::StrFormat("process %d on %s", facts.process, facts.host)}});
  }
  place = std::move(newcomer);
  newcomer = Connection();
  return absl::OkStatus();
}

absl::Status Gathering::Look() {
  for (uint32_t rank = 1; rank < own_.size; ++rank) {
    if (admitted_[rank].socket == nullptr || Hear(admitted_[rank])) continue;
    log_.Info(absl::StrFormat("rank %d has ended again; waits for its next life", rank));
    admitted_[rank] = Connection();
  }
  for (Connection& newcomer : newcomers_) {
    if (!(newcomer.facts.has_value() ? Hear(newcomer) : Greet(newcomer))) {
      newcomer = Connection();
    } else if (newcomer.facts.has_value()) {
      ATOLL_RETURN_IF_ERROR(Place(newcomer));
    }
  }
  std::erase_if(newcomers_, [](const Connection& newcomer) { return newcomer.socket == nullptr; });
  return absl::OkStatus();
}

bool Gathering::complete() const {
  return std::all_of(admitted_.begin() + 1, admitted_.end(),
                     [](const Connection& one) { return one.socket != nullptr; });
}

std::string Gathering::Missing() const {
  std::vector<uint32_t> missing;
  for (uint32_t rank = 1; rank < own_.size; ++rank) {
    if (admitted_[rank].socket == nullptr) missing.push_back(rank);
  }
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "), " of ",
                      own_.size);
}

std::string Gathering::ReachedAt() const {
  // Ranks on this host may have reached it through its name for itself, which Debian puts on the loopback.
  for (uint32_t rank = 1; rank < own_.size; ++rank) {
    const std::string address = admitted_[rank].socket->local_address();
    if (!IsLoopback({.host = address})) return address;
  }
  return admitted_[1].socket->local_address();
}

std::vector<std::unique_ptr<FrameSocket>> Gathering::Take() {
  std::vector<std::unique_ptr<FrameSocket>> taken;
  for (uint32_t rank = 1; rank < own_.size; ++rank) taken.push_back(std::move(admitted_[rank].socket));
  newcomers_.clear();
  return taken;
}

}  // namespace atl
