#ifndef ATOLL_SERVER_MEMBERS_OFFENCE_TRACKER_H_
#define ATOLL_SERVER_MEMBERS_OFFENCE_TRACKER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/contribution.h"
#include "core/offences.h"
#include "core/run_options.h"

namespace atl {

/// What is held against whom, by name, and whom the rule of `offenders` bans. A function of the round records
/// and of who was forgiven when, so that a restart knows what was known before. Pure state, not thread-safe.
class OffenceTracker {
 public:
  struct Ban {
    WorkerName worker;
    std::string why;  // the rule and the evidence
  };

  /// Its push to the open round of this fragment was refused for this. In the audit of that round.
  void Rejected(FragmentId fragment, const WorkerName& worker, Offence offence);

  /// Of the round that is closing, for its record.
  std::vector<ContributionAudit> Audit(const OffenderOptions& options, FragmentId fragment,
                                       const std::vector<Contribution>& contributions,
                                       const MergeFindings& findings) const;

  /// The record is committed. Returns who is to be banned for it. A round in which more than half are
  /// offenders says nothing: nobody can tell then who is wrong.
  std::vector<Ban> Note(const OffenderOptions& options, const RoundRecord& record);

  /// What this worker sent up to this version is not held against it any more.
  void Forgive(const WorkerName& worker, Version until);
  Version forgiven_until(const WorkerName& worker) const;
  /// A worker that joins under its name is new.
  void Forget(const WorkerName& worker);
  /// The run continues from other contents: windows begin again.
  void BeginEpoch();

  const OffenceRecord& Of(const WorkerName& worker) const;

 private:
  std::map<WorkerName, OffenceRecord> records_;
  std::map<WorkerName, Version> forgiven_;
  std::map<FragmentId, std::map<WorkerName, uint8_t>> rejected_;  // bits of Offence
};

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_OFFENCE_TRACKER_H_
