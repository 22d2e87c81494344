#include "cli/pull_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atoll {
namespace {

constexpr int kAttempts = 5;

}  // namespace

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
  for (int attempt = 0;; ++attempt) {
    const auto [first, last] = std::ranges::minmax_element(model, {}, &PulledFragment::version);
    const uint64_t oldest = first->version;
    const uint64_t newest = last->version;
    if (oldest == newest) return model;
    if (attempt == kAttempts) {
      return absl::UnavailableError(absl::StrFormat(
          "the fragments are of versions %d to %d, also after %d further pulls: a new version is published "
          "while the others are pulled. Pause the run (`atollctl run pause`), or try again",
          oldest, newest, kAttempts));
    }
    for (size_t i = 0; i < model.size(); ++i) {
      if (model[i].version == newest) continue;
      auto again = client.PullHead(
          layouts[i].id.value(), {.elements = layouts[i].elements, .stall = stall, .newer_than = newest - 1});
      if (absl::IsNotFound(again.status())) continue;
      ATOLL_RETURN_IF_ERROR(again.status());
      model[i] = *std::move(again);
    }
  }
}

}  // namespace atoll
