#include "cli/pull_model.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "common/ids.h"
#include "common/status.h"
#include "core/one_version.h"

namespace atl {

absl::StatusOr<std::vector<PulledFragment>> PullModel(ObserverClient& client,
                                                      const std::vector<FragmentLayout>& layouts,
                                                      SyncMode mode, Duration stall) {
  std::vector<PulledFragment> model;
  for (const FragmentLayout& layout : layouts) {
    ATOLL_ASSIGN_OR_RETURN(PulledFragment fragment,
                           client.PullHead(layout.id.value(), {.elements = layout.elements, .stall = stall}));
    model.push_back(std::move(fragment));
  }
  if (mode == SyncMode::kOverlapped) return model;
  std::vector<Version> versions;
  for (const PulledFragment& fragment : model) versions.emplace_back(fragment.version);
  const auto pull_again = [&](size_t i, Version after) -> absl::StatusOr<std::optional<Version>> {
    auto again =
        client.PullHead(layouts[i].id.value(),
                        {.elements = layouts[i].elements, .stall = stall, .newer_than = after.value()});
    if (absl::IsNotFound(again.status())) return std::nullopt;
    ATOLL_RETURN_IF_ERROR(again.status());
    model[i] = *std::move(again);
    return Version(model[i].version);
  };
  ATOLL_RETURN_IF_ERROR(PullUntilOneVersion(versions, pull_again));
  return model;
}

}  // namespace atl
