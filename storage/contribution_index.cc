#include "storage/contribution_index.h"

#include <string>

#include "absl/strings/str_format.h"
#include "storage/describe.h"

namespace atl {

absl::Status ContributionIndex::CheckFree(const ContributionKey& key) const {
  if (accepted_.contains(key)) {
    return absl::AlreadyExistsError(absl::StrFormat("%s: accepted already", Describe(key)));
  }
  if (passed_over_.contains(key)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: accepted before, and left out of its round", Describe(key)));
  }
  return absl::OkStatus();
}

absl::Status ContributionIndex::CheckCounted(const RoundRecord& record,
                                             const Contribution& contribution) const {
  const std::string what = Describe(record.fragment, record.version);
  if (contribution.key.fragment != record.fragment || contribution.key.epoch != record.epoch) {
    return absl::FailedPreconditionError(absl::StrFormat("commit of %s: %s is of another fragment or epoch",
                                                         what, Describe(contribution.key)));
  }
  const auto found = accepted_.find(contribution.key);
  if (found == accepted_.end() || !(found->second.contribution == contribution)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "commit of %s: %s was not accepted as the record has it", what, Describe(contribution.key)));
  }
  if (!found->second.used_by) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("commit of %s: %s already counted in version %d", what,
                                                       Describe(contribution.key),
                                                       found->second.used_by->value()));
}

const Contribution* ContributionIndex::Find(const ContributionKey& key) const {
  const auto found = accepted_.find(key);
  return found == accepted_.end() ? nullptr : &found->second.contribution;
}

std::vector<ContributionKey> ContributionIndex::PassedOver(const RoundRecord& record) const {
  std::set<ContributionKey> taken;
  for (const Contribution& contribution : record.contributions) taken.insert(contribution.key);
  std::vector<ContributionKey> passed_over;
  for (const auto& [key, entry] : accepted_) {
    if (key.fragment != record.fragment || entry.used_by || taken.contains(key)) continue;
    passed_over.push_back(key);
  }
  return passed_over;
}

std::vector<Contribution> ContributionIndex::Pending(Epoch epoch, FragmentId fragment) const {
  std::vector<Contribution> pending;
  for (const auto& [key, entry] : accepted_) {
    if (key.epoch == epoch && key.fragment == fragment && !entry.used_by) {
      pending.push_back(entry.contribution);
    }
  }
  return pending;
}

std::vector<ContributionKey> ContributionIndex::UncountedKeys() const {
  std::vector<ContributionKey> keys;
  for (const auto& [key, entry] : accepted_) {
    if (!entry.used_by) keys.push_back(key);
  }
  return keys;
}

std::vector<ContributionIndex::Counted> ContributionIndex::CountedContributions() const {
  std::vector<Counted> counted;
  for (const auto& [key, entry] : accepted_) {
    if (entry.used_by) counted.push_back({.contribution = entry.contribution, .version = *entry.used_by});
  }
  return counted;
}

std::vector<ContributionKey> ContributionIndex::NotNeeded(FragmentId fragment, Version oldest,
                                                          Epoch epoch) const {
  // Replaying version n+1 from n needs the contributions of round n+1: those of rounds up to the oldest
  // version kept serve nothing any more. Those that no round has taken yet are the open round's, however old
  // their base is, unless they are of an epoch that is over.
  std::vector<ContributionKey> keys;
  for (const auto& [key, entry] : accepted_) {
    if (key.fragment != fragment) continue;
    const bool needed = entry.used_by ? *entry.used_by > oldest : key.epoch == epoch;
    if (!needed) keys.push_back(key);
  }
  for (const ContributionKey& key : passed_over_) {
    if (key.fragment == fragment) keys.push_back(key);
  }
  return keys;
}

void ContributionIndex::Accept(const Contribution& contribution) {
  accepted_.emplace(contribution.key, Accepted{.contribution = contribution, .used_by = std::nullopt});
}

void ContributionIndex::Commit(const RoundRecord& record) {
  for (const ContributionKey& key : PassedOver(record)) {
    accepted_.erase(key);
    passed_over_.insert(key);
  }
  Count(record);
}

void ContributionIndex::Count(const RoundRecord& record) {
  for (const Contribution& contribution : record.contributions) {
    const auto found = accepted_.find(contribution.key);
    if (found != accepted_.end()) found->second.used_by = record.version;
  }
}

void ContributionIndex::Drop(const std::vector<ContributionKey>& keys) {
  for (const ContributionKey& key : keys) {
    accepted_.erase(key);
    passed_over_.erase(key);
  }
}

}  // namespace atl
