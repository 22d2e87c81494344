#include "worker/sync/seeding.h"

#include <span>

#include "common/status.h"

namespace atoll {

absl::Status SeedRun(Session& session, Replica& replica, const std::vector<FragmentLayout>& layout,
                     const WorkerContext& context) {
  EnterPhase(context, WorkerPhase::kSeeding);
  std::vector<std::vector<float>> values(layout.size());
  std::vector<SeedFragment> fragments;
  for (size_t i = 0; i < layout.size(); ++i) {
    values[i].resize(layout[i].elements);
    ATOLL_RETURN_IF_ERROR(replica.ReadFragment(layout[i], values[i]));
    fragments.push_back({layout[i].id, values[i]});
  }
  ATOLL_RETURN_IF_ERROR(session.With([&](const MemberRef& member) {
    return session.connection()->SeedParameters(member, replica.manifest(), fragments);
  }));
  context.log.Info("seeded the run with this worker's initial parameters",
                   {{"parameters", replica.manifest().elements()}, {"fragments", layout.size()}});
  return absl::OkStatus();
}

}  // namespace atoll
