#include "client/sync/parameter_puller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/content_hash.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {
namespace {

/// One long poll. Short enough that a command given meanwhile is followed soon.
constexpr Duration kPullWait = Seconds(10);

constexpr Duration kCancelledPause = Seconds(0.1);

/// How often the log says what is waited for, after the first pull that brought nothing.
constexpr Duration kSaysSo = Seconds(60);

/// Commands that end a wait for parameters. Seeding interests only those who wait for the first version.
bool CommandEndsWait(const WorkerCommands& commands, bool has_version) {
  return commands.stop || commands.drain || commands.resync || commands.run_stopped ||
         (commands.seed_granted && !has_version);
}

}  // namespace

absl::StatusOr<std::vector<FragmentLayout>> LayOutFragments(const Manifest& manifest,
                                                            const std::vector<FragmentHead>& heads,
                                                            const SyncOptions& sync) {
  const auto fragments = heads.empty() ? sync.fragments : static_cast<uint32_t>(heads.size());
  ATOLL_ASSIGN_OR_RETURN(std::vector<FragmentLayout> layout,
                         PlanFragments(manifest, fragments, sync.pattern));
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool fits = heads[i].id == layout[i].id && heads[i].elements == layout[i].elements;
    if (!fits) {
      return absl::FailedPreconditionError(
          absl::StrFormat("fragment %d has %d elements on the coordinator and fragment %d has %d here: the "
                          "two lay the model out "
                          "differently; run the same version of both",
                          heads[i].id.value(), heads[i].elements, layout[i].id.value(), layout[i].elements));
    }
  }
  return layout;
}

ParameterPuller::ParameterPuller(Session* session, Replica* replica, std::vector<FragmentLayout> layout,
                                 const WorkerContext& context)
    : session_(session), replica_(replica), context_(context) {
  fragments_.reserve(layout.size());
  for (FragmentLayout& one : layout) {
    const uint64_t elements = one.elements;
    fragments_.push_back({std::move(one), std::nullopt, std::vector<float>(elements), {}});
  }
}

absl::StatusOr<ParameterPuller::Outcome> ParameterPuller::Advance(Until until) {
  bool adopted = false;
  for (FragmentBase& fragment : fragments_) {
    ATOLL_ASSIGN_OR_RETURN(const Outcome outcome, AdvanceFragment(fragment, until));
    if (outcome == Outcome::kInterrupted) return outcome;
    adopted |= outcome == Outcome::kAdopted;
  }
  said_wait_.reset();
  if (!adopted) return Outcome::kFinished;
  context_.worker_status->Update([this](ProgressReport& progress) {
    progress.base = version();
    progress.waiting_for.clear();
  });
  return Outcome::kAdopted;
}

absl::StatusOr<ParameterPuller::Outcome> ParameterPuller::AdvanceFragment(FragmentBase& fragment,
                                                                          Until until) {
  const PullEncoding encoding = PullEncoding::Of(session_->info().run);
  // The head for its own sake is wanted when what is held here is in doubt, or nothing is.
  const std::optional<Version> after = until == Until::kNext ? fragment.version : std::nullopt;
  PullRequest request = RequestFor(fragment.layout, encoding, after, /*have=*/after, kPullWait);
  payload_.resize(CodecFor(encoding.full).EncodedSize(request.elements));
  EnterPhase(context_, WorkerPhase::kPulling);
  while (true) {
    const WorkerCommands commands = context_.worker_status->commands();
    if (CommandEndsWait(commands, fragment.version.has_value())) return Outcome::kInterrupted;
    ATOLL_RETURN_IF_ERROR(session_->CheckMembership(commands));
    auto pulled = session_->With(
        [&](const MemberRef& member) { return session_->connection()->Pull(member, request, payload_); });
    if (absl::IsCancelled(pulled.status())) {
      if (CommandEndsWait(context_.worker_status->commands(), fragment.version.has_value()))
        return Outcome::kInterrupted;
      // Ended for a command that has been obeyed already.
      if (context_.sleeper->SleepFor(kCancelledPause)) continue;
    }
    ATOLL_RETURN_IF_ERROR(pulled.status());
    run_state_ = pulled->state;
    context_.worker_status->NoteRunState(pulled->state);
    switch (pulled->outcome) {
      case PullOutcome::kParameters: {
        ATOLL_ASSIGN_OR_RETURN(const bool adopted, Adopt(fragment, *pulled, request));
        if (adopted) return Outcome::kAdopted;
        break;
      }
      case PullOutcome::kRunFinished:
        return Outcome::kFinished;
      case PullOutcome::kNotYet:
        EnterPhase(context_, WorkerPhase::kWaiting, pulled->waiting_for);
        LogWait(fragment, pulled->waiting_for);
        break;
    }
  }
}

void ParameterPuller::LogWait(const FragmentBase& fragment, const std::string& waiting_for) {
  const MonoTime now = context_.clock->Now();
  if (waiting_for.empty() || (said_wait_.has_value() && now - *said_wait_ < kSaysSo)) return;
  said_wait_ = now;
  LogFields fields = {{"for", waiting_for}};
  if (fragment.version.has_value()) fields.emplace_back("base", fragment.version->value());
  context_.log.Info("waits for parameters", fields);
}

ContentHash ParameterPuller::HashBase(size_t fragment) {
  return HashPublished(fragments_[fragment].values, session_->info().run.pull_codec, payload_);
}

uint64_t ParameterPuller::config_version() const {
  uint64_t newest = 0;
  for (const FragmentBase& fragment : fragments_) newest = std::max(newest, fragment.plan.config_version);
  return newest;
}

absl::StatusOr<bool> ParameterPuller::Adopt(FragmentBase& fragment, const PulledVersion& pulled,
                                            PullRequest& request) {
  const Spending spending(context_.time, TimeUse::kApply);
  ATOLL_RETURN_IF_ERROR(CheckEpoch(pulled, session_->info().member.epoch));
  if (fragment.version.has_value()) {
    ATOLL_RETURN_IF_ERROR(CheckNotBack(pulled, fragment.layout.id, *fragment.version, context_.log));
  }
  ATOLL_ASSIGN_OR_RETURN(const Landing landing, Land(request, pulled, payload_, fragment.values));
  if (landing == Landing::kAstray) {
    context_.log.Warning("what is held here is not what was published; pulling all of it",
                         {{"fragment", fragment.layout.id.value()}, {"version", pulled.version.value()}});
    request.call.have = std::nullopt;
    return false;
  }
  fragment.version = pulled.version;
  fragment.served = pulled.published;
  request.call.have = pulled.version;
  if (landing == Landing::kOneStep) return false;
  ATOLL_RETURN_IF_ERROR(replica_->WriteFragment(fragment.layout, fragment.values));
  fragment.written = true;
  fragment.plan = pulled.plan;
  return true;
}

}  // namespace atl
