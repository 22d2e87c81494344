#ifndef ATOLL_SERVER_RUN_SEEDING_H_
#define ATOLL_SERVER_RUN_SEEDING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/manifest.h"
#include "server/run/member_calls.h"
#include "server/run/run_core.h"

namespace atl {

/// How an empty run gets its parameters: who may upload version 0, and what that opens. Thread-safe.
class Seeding {
 public:
  /// Both outlive it.
  Seeding(RunCore& core, MemberCalls& member_calls) : core_(core), member_calls_(member_calls) {}

  bool seeded() const;
  /// Of the run.
  RunModel model() const;
  /// Whether the caller may upload version 0 now.
  absl::Status CheckSeeder(const MemberRef& caller, MonoTime now, Effects& effects);
  /// An upload of the seed ended before it was whole.
  void SeedUploadAborted(const WorkerName& worker, Effects& effects);
  /// That the worker joined with; empty: not known.
  std::string ManifestHashOf(const WorkerName& worker) const;
  /// Version 0 is on disk: opens the rounds.
  void Seeded(const Manifest& manifest, const std::vector<FragmentLayout>& layouts, const WorkerName& by,
              MonoTime now, Effects& effects);

 private:
  RunCore& core_;
  MemberCalls& member_calls_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_SEEDING_H_
