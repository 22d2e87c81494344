#include "server/run/seeding.h"

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/members/member_lists.h"
#include "server/rejection.h"

namespace atl {

absl::Status Seeding::CheckSeeder(const MemberRef& caller, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(member_calls_.Renew(caller, now, effects));
  if (core_.control.mode == RunMode::kStopped) return absl::FailedPreconditionError(core_.ControlText());
  if (core_.model.known()) {
    return absl::AlreadyExistsError(absl::StrFormat(
        "the run is seeded already; worker '%s' should pull version 0 or later", caller.worker));
  }
  if (core_.grant.HeldBy(caller.worker)) return absl::OkStatus();
  return Reject(
      Rejection{
          .reason = RejectionReason::kNotSeeded, .metadata = {}, .retry_after = core_.options.heartbeat},
      absl::StrFormat("worker '%s' does not hold the grant to seed; %s", caller.worker, core_.SeedReason()));
}

void Seeding::SeedUploadAborted(const WorkerName& worker, Effects& effects) {
  MutexLock lock(&core_.mutex);
  if (core_.model.known() || !core_.grant.HeldBy(worker) ||
      !core_.grant.UploadAborted(SeedersOf(core_.members)))
    return;
  effects.Event(EventKind::kUnknown, core_.grant.holder(),
                absl::StrFormat("the upload of the seed by worker '%s' broke off %d times; worker '%s' is to "
                                "seed the run now",
                                worker, SeedGrant::kUploads, core_.grant.holder()));
}

bool Seeding::seeded() const {
  MutexLock lock(&core_.mutex);
  return core_.model.known();
}

RunModel Seeding::model() const {
  MutexLock lock(&core_.mutex);
  return core_.model;
}

std::string Seeding::ManifestHashOf(const WorkerName& worker) const {
  MutexLock lock(&core_.mutex);
  return core_.members.FindAccount(worker).manifest_hash;
}

void Seeding::Seeded(const Manifest& manifest, const std::vector<FragmentLayout>& layouts,
                     const WorkerName& by, MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  core_.model = RunModel(manifest);
  core_.OpenRounds(layouts, now);
  effects.Event(EventKind::kSeeded, by,
                absl::StrFormat("worker '%s' seeded %d parameters in %d tensors", by, manifest.elements(),
                                manifest.tensors.size()));
  effects.rounds_changed = true;
}

}  // namespace atl
