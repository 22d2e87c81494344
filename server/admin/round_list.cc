#include "server/admin/round_list.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/known_loss.h"
#include "server/run/run_statistics.h"

namespace atl {
namespace {

RoundContributionView Describe(const Contribution& contribution, const RoundRecord& record,
                               const ModelOptions& model) {
  return {.worker = contribution.key.worker,
          .late_versions = record.version.value() - 1 - contribution.key.base.value(),
          .tokens = contribution.tokens,
          .steps = contribution.steps,
          .loss = KnownLoss(model, contribution.mean_loss),
          .norm = contribution.norm,
          .payload_bytes = contribution.payload_bytes};
}

RoundDetailView Describe(const RoundRecord& record, const ModelOptions& model) {
  RoundDetailView view{.config_version = record.config_version};
  for (size_t i = 0; i < record.contributions.size(); ++i) {
    view.contributions.push_back(Describe(record.contributions[i], record, model));
    if (i < record.weights.size()) view.contributions.back().weight = record.weights[i];
    view.summary.tokens += view.contributions.back().tokens;
    view.summary.payload_bytes += view.contributions.back().payload_bytes;
  }
  std::ranges::sort(view.contributions, {}, &RoundContributionView::worker);
  view.summary.fragment = record.fragment;
  view.summary.version = record.version;
  view.summary.contributions = static_cast<uint32_t>(record.contributions.size());
  if (!record.contributions.empty()) view.summary.train_loss = MeanLoss(record, model);
  view.summary.committed_tokens = record.committed_tokens;
  view.summary.close_reason = record.close_reason;
  view.summary.closed_unix_ns = record.closed_unix_ns;
  return view;
}

}  // namespace

absl::StatusOr<RoundListView> RoundsOf(const CoordinatorContext& context, FragmentId fragment, Version after,
                                       uint32_t limit) {
  const StatusView status = context.state->views().Status(kMaxListedRounds, context.clock->Now());
  if (fragment.value() >= status.fragments.size()) {
    return absl::NotFoundError(absl::StrFormat("there is no fragment %d; the run has %d", fragment.value(),
                                               status.fragments.size()));
  }
  // A record says when its round was closed, not for how long it was open.
  std::map<Version, const RoundSummaryView*> timed;
  for (const RoundSummaryView& round : status.rounds) {
    if (round.fragment == fragment) timed.emplace(round.version, &round);
  }
  const ConfigPtr config = context.config();
  RoundListView list{.head = status.fragments[fragment.value()].version};
  Version version = after;
  while (version < list.head && list.rounds.size() < std::min(limit, kMaxListedRounds)) {
    version = Next(version);
    const auto record = context.store->ReadRound(fragment, version);
    if (absl::IsNotFound(record.status())) continue;
    ATOLL_RETURN_IF_ERROR(record.status());
    list.rounds.push_back(Describe(*record, config->run.model));
    if (const auto it = timed.find(version); it != timed.end()) {
      list.rounds.back().summary.open_seconds = it->second->open_seconds;
      list.rounds.back().summary.commit_seconds = it->second->commit_seconds;
    }
  }
  return list;
}

}  // namespace atl
