#include "server/run/run_core.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "server/members/member_entries.h"
#include "server/members/member_lists.h"
#include "server/rejection.h"

namespace atl {

std::string_view RunModeName(RunMode mode) {
  switch (mode) {
    case RunMode::kRunning:
      return "running";
    case RunMode::kPaused:
      return "paused";
    case RunMode::kStopped:
      return "stopped";
  }
  return "unknown";
}

std::string Because(const std::string& why) { return why.empty() ? std::string() : ": " + why; }

RunCore::RunCore(const CoordinatorStateOptions& with)
    : options(with),
      identity(with.identity),
      configs(with.config, with.earlier_configs),
      members(&configs, with.identity, with.max_ranks),
      statistics(&configs),
      evaluation_assignment(EvaluationPolicyOf(with.config->run)),
      privacy(with.fragments) {}

bool RunCore::Finished() const {
  return !fragments.empty() &&
         std::ranges::all_of(fragments, [](const FragmentRound& fragment) { return fragment.finished(); });
}

std::string RunCore::ControlText() const {
  return absl::StrFormat("%s by %s%s", std::string(RunModeName(control.mode)), control.author,
                         Because(control.reason));
}

absl::Status RunCore::CheckOpen() const {
  if (control.mode == RunMode::kStopped) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run is %s permanently; to continue from its state, start a coordinator on a copy of a "
        "checkpoint "
        "that was made before: cp -r DATA_DIR/checkpoints/NAME COPY, then atoll-coordinator --data-dir COPY",
        ControlText()));
  }
  if (Finished()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the run is finished at version %d; 'atollctl run extend ROUNDS' or 'atollctl "
                        "checkpoint restore NAME' continues it",
                        fragments.front().head().value()));
  }
  return absl::OkStatus();
}

absl::Status RunCore::CheckFragment(FragmentId fragment) const {
  const size_t count = fragments.empty() ? options.fragments : fragments.size();
  if (fragment.value() < count) return absl::OkStatus();
  return Reject(RejectionReason::kWrongFragment,
                absl::StrFormat("there is no fragment %d; the run has %d", fragment.value(), count));
}

absl::Status RunCore::CheckModel(const WorkerName& worker) const {
  const std::string hash = members.FindAccount(worker).manifest_hash;
  if (!model.known() || hash.empty() || hash == model.hash()) return absl::OkStatus();
  return Reject(
      RejectionReason::kManifestMismatch,
      absl::StrFormat("the model of worker '%s' hashes to %s, that of the seeded run to %s; send the "
                      "manifest with another Join to be told what differs",
                      worker, hash, model.hash()));
}

std::vector<FragmentHead> RunCore::FragmentHeadList() const {
  std::vector<FragmentHead> views;
  for (const FragmentRound& fragment : fragments) {
    views.push_back(
        {.id = fragment.layout().id, .version = fragment.head(), .elements = fragment.layout().elements});
  }
  return views;
}

Version RunCore::NewestHead() const {
  Version newest;
  for (const FragmentRound& fragment : fragments) newest = std::max(newest, fragment.head());
  return newest;
}

absl::Status UnknownWorker(const WorkerName& worker) {
  return absl::NotFoundError(absl::StrFormat("no worker of the name '%s' was ever seen in this run", worker));
}

void RunCore::RefreshGrant(Effects& effects) {
  if (model.known()) return;
  // While the holder is there, who else could seed need not be listed.
  const Member* holder = members.membership().Find(grant.holder());
  if (holder != nullptr && holder->role == WorkerRole::kTrainer && holder->state == MemberState::kActive &&
      !members.account(holder->name).manifest_hash.empty()) {
    return;
  }
  const WorkerName before = grant.holder();
  if (!grant.Refresh(SeedersOf(members)) || before.empty()) return;
  effects.Event(
      EventKind::kUnknown, grant.holder(),
      absl::StrFormat("worker '%s' is gone; worker '%s' is to seed the run now", before, grant.holder()));
}

std::string RunCore::SeedReason() const {
  if (grant.holder().empty() && configs.run().model.external() != nullptr) {
    return "the model is not known until the first worker joins: waiting for one to seed the parameters";
  }
  if (grant.holder().empty()) return "waiting for a worker to join and seed the parameters";
  const uint32_t broken = grant.aborted_uploads();
  return absl::StrFormat(
      "waiting for worker '%s' to seed the parameters%s", grant.holder(),
      broken == 0 ? "" : absl::StrFormat("; its upload has broken off %s", Counted(broken, "time")));
}

void RunCore::OpenRounds(const std::vector<FragmentLayout>& layouts, MonoTime now) {
  for (const FragmentLayout& layout : layouts) {
    FragmentRound& fragment = fragments.emplace_back(layout, identity.epoch, &configs);
    fragment.Open(Version(0), members.membership(), now);
  }
}

WorkerEntry RunCore::Entry(const WorkerName& worker) const {
  WorkerEntry entry = *EntryOf(members, worker);
  entry.forgiven_until = offences.forgiven_until(worker).value();
  return entry;
}

std::optional<PrivacyView> RunCore::Privacy() const {
  const PrivacyOptions& promised = configs.run().privacy;
  if (!promised.enabled()) return std::nullopt;
  PrivacyView view{.options = promised, .epsilon = std::nullopt, .published_epsilon = std::nullopt};
  if (!promised.noisy() || privacy.without_noise()) return view;
  view.epsilon = EpsilonOf(privacy.local_rho(), promised.delta);
  if (!IsFixedSum(configs.run().merge)) return view;
  if (const auto published = privacy.published_rho()) {
    view.published_epsilon = EpsilonOf(*published, promised.delta);
  }
  return view;
}

}  // namespace atl
