#include "server/members/rejected_joins.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/membership.h"
#include "server/rejection.h"

namespace atl {

std::string ReasonText(const absl::Status& rejection) {
  const RejectionReason reason = ReasonOf(rejection);
  return reason == RejectionReason::kNone ? std::string(absl::StatusCodeToString(rejection.code()))
                                          : std::string(RejectionReasonName(reason));
}

void RejectedJoins::MakeRoom(const std::string& address, MonoTime now) {
  std::erase_if(entries_, [now](const auto& entry) { return now - entry.second.last >= kForgetAfter; });
  const auto from_there = [&](const auto& entry) { return entry.second.address == address; };
  const bool crowded = std::ranges::count_if(entries_, from_there) >= static_cast<ptrdiff_t>(kMostPerAddress);
  if (!crowded && entries_.size() < kMost) return;
  // A stranger tries each name once; a worker that should be here tries again and again.
  auto dropped = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (crowded && !from_there(*it)) continue;
    const auto rank = [](const Entry& entry) { return std::pair(entry.attempts, entry.last); };
    if (dropped == entries_.end() || rank(it->second) < rank(dropped->second)) dropped = it;
  }
  entries_.erase(dropped);
}

bool RejectedJoins::Note(const WorkerName& worker, const std::string& address, const absl::Status& rejection,
                         MonoTime now) {
  ++total_;
  const WorkerName name = ValidateWorkerName(worker).ok() ? worker : WorkerName();
  auto it = entries_.find(name);
  if (it == entries_.end()) {
    MakeRoom(address, now);
    it = entries_.emplace(name, Entry{.address = {}, .reason = {}, .message = {}, .first = now}).first;
  }
  Entry& entry = it->second;
  std::string reason = ReasonText(rejection);
  const bool is_new = entry.attempts == 0 || entry.reason != reason;
  entry.address = address;
  entry.reason = std::move(reason);
  entry.message = std::string(rejection.message());
  entry.last = now;
  ++entry.attempts;
  return is_new && events_.Allow(now);
}

void RejectedJoins::Unbanned(const WorkerName& worker) {
  const auto found = entries_.find(worker);
  if (found == entries_.end() || found->second.reason != RejectionReasonName(RejectionReason::kBanned))
    return;
  entries_.erase(found);
}

std::vector<RejectedJoinView> RejectedJoins::Views(MonoTime now) const {
  std::vector<RejectedJoinView> views;
  for (const auto& [name, entry] : entries_) {
    if (now - entry.last >= kForgetAfter) continue;
    views.push_back({.worker = name,
                     .address = entry.address,
                     .reason = entry.reason,
                     .message = entry.message,
                     .since_s = ToSeconds(now - entry.first),
                     .last_s = ToSeconds(now - entry.last),
                     .attempts = entry.attempts});
  }
  std::ranges::stable_sort(views, std::ranges::greater(), &RejectedJoinView::since_s);
  return views;
}

}  // namespace atl
