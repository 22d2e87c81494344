#include "server/rounds/past_contributions.h"

#include <algorithm>

namespace atl {
namespace {

// Versions that contributions are remembered for at least, so that a push whose answer was lost is known
// again.
constexpr uint64_t kPastVersions = 64;

}  // namespace

bool SameContent(const Contribution& a, const Contribution& b) {
  return a.codec == b.codec && a.payload_bytes == b.payload_bytes && a.payload_crc32c == b.payload_crc32c;
}

void PastContributions::Note(const RoundRecord& record, uint32_t staleness_limit) {
  if (record.epoch == epoch_ && record.contributions.empty()) {
    // A restore: nobody of this epoch can have begun on an earlier version.
    remembered_from_ = std::max(remembered_from_, record.version);
    return;
  }
  // What was begun before a restore can never enter, under whatever epoch it comes: a restore makes a version
  // of no contributions.
  if (record.contributions.empty()) remembered_from_ = std::max(remembered_from_, record.version);
  if (record.epoch != epoch_) return;
  for (const Contribution& c : record.contributions) committed_[{c.key.base, c.key.worker}] = c;
  const uint64_t kept = std::max<uint64_t>(kPastVersions, staleness_limit);
  if (record.version.value() <= kept) return;
  remembered_from_ = std::max(remembered_from_, Version(record.version.value() - kept));
  while (!committed_.empty() && committed_.begin()->first.first < remembered_from_) {
    committed_.erase(committed_.begin());
  }
}

const Contribution* PastContributions::Find(Version base, const WorkerName& worker) const {
  const auto it = committed_.find({base, worker});
  return it == committed_.end() ? nullptr : &it->second;
}

const Contribution* PastContributions::FindSame(const Contribution& contribution) const {
  if (contribution.norm == 0 || committed_.empty()) return nullptr;
  const Version newest = committed_.rbegin()->first.first;
  for (Version base = committed_.begin()->first.first; base <= newest; base = Next(base)) {
    const Contribution* past = Find(base, contribution.key.worker);
    if (past == nullptr || base == contribution.key.base) continue;
    if (SameContent(*past, contribution) && past->norm == contribution.norm) return past;
  }
  return nullptr;
}

}  // namespace atl
