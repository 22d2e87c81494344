#include "client/sync/seeding.h"

#include <span>

#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "common/status.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

/// No coordinator takes such a seed, and the worker's next attempt would have the same values.
absl::Status CheckFinite(const Manifest& manifest, const FragmentLayout& fragment,
                         std::span<const float> values) {
  for (const TensorSlot& slot : fragment.slots) {
    const auto bad = FirstNonFinite(values.subspan(slot.offset, slot.elements));
    if (!bad) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "this worker cannot seed the run: value %d of tensor '%s' is not finite (%g); a run starts from "
        "finite values: change the model's initial values, or keep this tensor out of the run, and start the "
        "worker again",
        *bad, manifest.tensors[slot.tensor].name, values[slot.offset + *bad]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SeedRun(Session& session, Replica& replica, const std::vector<FragmentLayout>& layout,
                     const WorkerContext& context) {
  EnterPhase(context, WorkerPhase::kSeeding);
  std::vector<std::vector<float>> values(layout.size());
  std::vector<SeedFragment> fragments;
  for (size_t i = 0; i < layout.size(); ++i) {
    values[i].resize(layout[i].elements);
    ATOLL_RETURN_IF_ERROR(replica.ReadFragment(layout[i], values[i]));
    ATOLL_RETURN_IF_ERROR(CheckFinite(replica.manifest(), layout[i], values[i]));
    fragments.push_back({layout[i].id, values[i]});
  }
  ATOLL_RETURN_IF_ERROR(session.With([&](const MemberRef& member) {
    return session.connection()->SeedParameters(member, replica.manifest(), fragments);
  }));
  context.log.Info("seeded the run with this worker's initial parameters",
                   {{"parameters", replica.manifest().elements()}, {"fragments", layout.size()}});
  return absl::OkStatus();
}

absl::Status UseSeedGrant(Session& session, Replica& replica, const std::vector<FragmentLayout>& layout,
                          RetryPolicy& retry_policy, const WorkerContext& context) {
  const absl::Status seeded = SeedRun(session, replica, layout, context);
  context.worker_status->Done(&WorkerCommands::seed_granted);
  if (seeded.ok() || RejectionReasonOf(seeded) == RejectionReason::kWrongEpoch) return seeded;
  // Without a reason it may be what a run says that was seeded meanwhile.
  const bool known_or_defect =
      RejectionReasonOf(seeded) != RejectionReason::kNone || absl::IsInvalidArgument(seeded);
  // A push that is not finite is dropped for the next one, but the next seed would be the same.
  const bool hopeless = RejectionReasonOf(seeded) == RejectionReason::kNotFinite;
  if (hopeless || (known_or_defect && ReactionTo(seeded) == Reaction::kExit)) return seeded;
  // An attempt whose answer was lost may have seeded the run, or the grant went to another worker: the next
  // pull shows it.
  retry_policy.Pause(seeded, "to seed the run");
  return absl::OkStatus();
}

}  // namespace atl
