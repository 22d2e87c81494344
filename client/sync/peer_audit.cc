#include "client/sync/peer_audit.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/sync/rejection.h"
#include "common/human.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kNamed = 8;  // workers in a message; the others are counted

std::string WhoSigned(const std::map<WorkerName, ContentHash>& signers) {
  std::vector<std::string> parts;
  for (const auto& [worker, hash] : signers) {
    if (parts.size() == kNamed) break;
    parts.push_back(absl::StrFormat("'%s' signed %s", worker, ToHex(hash)));
  }
  if (signers.size() > kNamed) parts.push_back(absl::StrFormat("%d more", signers.size() - kNamed));
  return absl::StrJoin(parts, ", ");
}

absl::Status Untrusted(const std::string& what) {
  return Distrust(absl::StrFormat(
      "%s. This worker stops. Compare `atollctl verify --confirmations` on the machines of several workers",
      what));
}

}  // namespace

void PeerAudit::Signed(const MemberRef& member, const Confirmation& mine) {
  const MutexLock lock(&mutex_);
  if (epoch_ != member.epoch) watched_.clear();
  epoch_ = member.epoch;
  // A round that is repeated on the same base keeps what is known of the others.
  watched_.try_emplace({mine.fragment, mine.version}, Watched{.mine = mine.published});
  if (watched_.size() <= kWatched) return;
  const auto oldest =
      std::ranges::min_element(watched_, {}, [](const auto& one) { return one.first.second; });
  watched_.erase(oldest);
}

void PeerAudit::DropAbove(const std::vector<FragmentHead>& heads) {
  const MutexLock lock(&mutex_);
  for (const FragmentHead& head : heads) {
    const auto first = watched_.upper_bound({head.id, head.version});
    const auto end = watched_.lower_bound({FragmentId(head.id.value() + 1), Version(0)});
    for (auto it = first; it != end; ++it) {
      if (!it->second.different.empty()) NoteVote(it->second);
    }
    watched_.erase(first, end);
  }
}

std::vector<ConfirmationQuery> PeerAudit::Requests(const MemberRef& member) {
  const MutexLock lock(&mutex_);
  std::vector<ConfirmationQuery> requests;
  if (epoch_ != member.epoch) return requests;
  if (not_shown_ && not_shown_->incarnation == member.incarnation &&
      context_.clock->Now() < not_shown_->until) {
    return requests;
  }
  for (const auto& [place, watched] : watched_) {
    if (requests.empty() || requests.back().fragment != place.first) {
      requests.push_back({.fragment = place.first, .first = place.second, .last = place.second});
    }
    requests.back().last = place.second;
  }
  const auto first = std::ranges::lower_bound(requests, first_, {}, &ConfirmationQuery::fragment);
  std::rotate(requests.begin(), first, requests.end());
  return requests;
}

absl::Status PeerAudit::Compare(const MemberRef& member, Duration lease) {
  const std::vector<ConfirmationQuery> requests = Requests(member);
  const MonoTime end =
      context_.clock->Now() + (lease > Duration(0) ? std::min(kLongestLook, lease / 4) : kLongestLook);
  for (const ConfirmationQuery& request : requests) {
    const bool in_time = context_.clock->Now() < end;
    bool goes_on = false;
    if (in_time) {
      ATOLL_ASSIGN_OR_RETURN(goes_on, Look(member, request, end));
    }
    const MutexLock lock(&mutex_);
    // Behind one that failed: it may be the only one that does.
    first_ = FragmentId(request.fragment.value() + (in_time ? 1 : 0));
    if (!goes_on) break;
  }
  return requests.empty() ? absl::OkStatus() : JudgeOldest();
}

void PeerAudit::NoteNotShown(const MemberRef& member) {
  const MutexLock lock(&mutex_);
  not_shown_ = {.incarnation = member.incarnation, .until = context_.clock->Now() + kAskAgain};
  if (std::exchange(said_not_shown_, true)) return;
  context_.log.Info(
      "the coordinator does not serve confirmations: parameters are not compared with other workers until it "
      "does",
      {{"asks_again_after", HumanDuration(kAskAgain)}});
}

absl::StatusOr<bool> PeerAudit::Look(const MemberRef& member, ConfirmationQuery request, MonoTime end) {
  for (int page = 0; page < kPages; ++page) {
    const Duration timeout = end - context_.clock->Now();
    if (timeout <= Duration(0)) return false;
    const auto shown = connection_->GetConfirmations(member, request, timeout);
    if (absl::IsUnimplemented(shown.status())) {
      NoteNotShown(member);
      return false;
    }
    if (!shown.ok()) {
      context_.log.Debug("confirmations could not be read; trying again",
                         {{"error", Explain(shown.status())}});
      return false;
    }
    for (const SignedConfirmation& one : shown->confirmations) ATOLL_RETURN_IF_ERROR(Note(member, one));
    if (!shown->next.has_value()) break;
    request.after = shown->next;
  }
  const MutexLock lock(&mutex_);
  for (auto& [place, watched] : watched_) {
    const bool looked_at =
        place.first == request.fragment && place.second >= request.first && place.second <= request.last;
    if (looked_at) ++watched.looks;
  }
  return true;
}

absl::Status PeerAudit::Note(const MemberRef& member, const SignedConfirmation& theirs) {
  if (theirs.worker == member.worker) return absl::OkStatus();
  const Place place{theirs.confirmation.fragment, theirs.confirmation.version};
  const MutexLock lock(&mutex_);
  const auto found = watched_.find(place);
  if (found == watched_.end()) return absl::OkStatus();
  Watched& watched = found->second;
  if (watched.equal.contains(theirs.worker) || watched.different.contains(theirs.worker))
    return absl::OkStatus();
  switch (JudgePeer(member.run_id, member.epoch, options_.pinned, watched.mine, theirs)) {
    case PeerFinding::kUncounted:
      return absl::OkStatus();
    case PeerFinding::kEqual:
      watched.equal.insert(theirs.worker);
      return absl::OkStatus();
    case PeerFinding::kForged:
      return Untrusted(
          absl::StrFormat("the coordinator shows a confirmation of worker '%s' for version %d of fragment %d "
                          "that the key beside it did "
                          "not sign",
                          theirs.worker, place.second.value(), place.first.value()));
    case PeerFinding::kOtherKey:
      return Untrusted(absl::StrFormat(
          "the coordinator shows worker '%s' with another public key than the one in --peer-keys",
          theirs.worker));
    case PeerFinding::kDifferent:
      break;
  }
  watched.different.emplace(theirs.worker, theirs.confirmation.published);
  context_.log.Error("another worker signed other parameters than the coordinator served this one",
                     {{"worker", theirs.worker},
                      {"fragment", place.first.value()},
                      {"version", place.second.value()},
                      {"signed", ToHex(theirs.confirmation.published)},
                      {"served", ToHex(watched.mine)}});
  return absl::OkStatus();
}

absl::Status PeerAudit::JudgeOldest() {
  const MutexLock lock(&mutex_);
  for (auto it = watched_.begin(); it != watched_.end();) {
    const bool at_once = options_.any_difference && !it->second.different.empty();
    if (it->second.looks < kLooks && !at_once) {
      ++it;
      continue;
    }
    ATOLL_RETURN_IF_ERROR(Judge(it->first, it->second));
    it = watched_.erase(it);
  }
  return absl::OkStatus();
}

bool PeerAudit::NoteVote(const Watched& watched) {
  const bool outvoted = watched.different.size() >= watched.equal.size() + 1;
  outvoted_.push_back(outvoted);
  if (outvoted_.size() > kRemembered) outvoted_.pop_front();
  return outvoted;
}

absl::Status PeerAudit::Judge(const Place& place, const Watched& watched) {
  const size_t agree = watched.equal.size() + 1;
  if (agree == 1 && watched.different.empty()) {
    if (++silent_ == kSilent && !options_.pinned.empty()) {
      context_.log.Warning(
          "no worker of --peer-keys has confirmed a version for long; the coordinator may hold their "
          "confirmations back",
          {{"versions", silent_}, {"version", place.second.value()}});
    }
    return absl::OkStatus();
  }
  silent_ = 0;
  if (watched.different.empty() && !std::exchange(agreed_, true)) {
    context_.log.Info("other workers signed the same parameters",
                      {{"version", place.second.value()}, {"workers", absl::StrJoin(watched.equal, ",")}});
  }
  const bool outvoted = NoteVote(watched);
  const auto lost = static_cast<size_t>(std::ranges::count(outvoted_, true));
  const bool stops =
      (outvoted && lost >= kOutvoted) || (options_.any_difference && !watched.different.empty());
  if (!stops) return absl::OkStatus();
  return Untrusted(absl::StrFormat(
      "the coordinator served this worker other parameters than it served others: version %d of fragment %d "
      "has hash %s "
      "here; %s (%s with this one)",
      place.second.value(), place.first.value(), ToHex(watched.mine), WhoSigned(watched.different),
      agree == 2 ? "1 worker agrees" : absl::StrFormat("%d workers agree", agree - 1)));
}

}  // namespace atl
