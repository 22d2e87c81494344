#include "server/run/contributions.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/known_loss.h"
#include "server/rejection.h"

namespace atl {
namespace {

Contribution ContributionOf(const MemberRef& caller, const PushHeader& header, const ModelOptions& model) {
  Contribution contribution;
  contribution.key = ContributionKeyOf(caller, header.key);
  contribution.incarnation = caller.incarnation;
  contribution.codec = header.codec;
  contribution.payload_bytes = header.payload_bytes;
  contribution.payload_crc32c = header.payload_crc32c;
  contribution.tokens = header.tokens;
  contribution.steps = header.steps;
  contribution.partition = header.partition;
  contribution.samples_consumed = header.samples_consumed;
  contribution.mean_loss = KnownLoss(model, header.mean_loss);
  return contribution;
}

/// One absurd figure would spoil the mean of its round, and the scale of every plot. Of an external model
/// nothing is absurd: a loss beyond its bound counts as not known, as infinity does.
absl::Status CheckLoss(const WorkerName& worker, const PushHeader& header, const ModelOptions& model) {
  const bool not_known = model.external() != nullptr || !std::isfinite(header.mean_loss);
  if (not_known || IsLossOf(model, header.mean_loss)) return absl::OkStatus();
  return Reject(RejectionReason::kNotFinite,
                absl::StrFormat("worker '%s' claims a mean loss of %g for fragment %d on base version %d: "
                                "PushHeader.mean_loss is from 0 to %g nats per token",
                                worker, header.mean_loss, header.key.fragment.value(),
                                header.key.base.value(), kLargestLoss));
}

/// More than the worker was assigned is capped, but no worker pushes what it has not trained: without steps
/// or tokens, the contribution would have no weight, and its worker's pace no meaning.
absl::Status CheckWork(const WorkerName& worker, const PushHeader& header) {
  const char* const field = header.steps == 0 ? "steps" : header.tokens == 0 ? "tokens" : nullptr;
  if (field == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "worker '%s' claims 0 %s for fragment %d on base version %d: PushHeader.%s is at least 1", worker,
      field, header.key.fragment.value(), header.key.base.value(), field));
}

absl::Status BeingRestored() {
  return WithRetryAfter(absl::UnavailableError("a checkpoint is just being restored; ask again"),
                        Seconds(0.2));
}

absl::Status CheckForm(const WorkerName& worker, const PushHeader& header, const std::set<CodecKind>& codecs,
                       uint64_t elements) {
  if (!codecs.contains(header.codec)) {
    const auto name = [](std::string* out, CodecKind codec) {
      absl::StrAppend(out, std::string(CodecName(codec)));
    };
    return Reject(RejectionReason::kWrongCodec,
                  absl::StrFormat("worker '%s' pushes with codec %s, the run's is %s", worker,
                                  std::string(CodecName(header.codec)), absl::StrJoin(codecs, " or ", name)));
  }
  const uint64_t expected = CodecFor(header.codec).EncodedSize(elements);
  if (header.payload_bytes == expected) return absl::OkStatus();
  return Reject(
      RejectionReason::kWrongSize,
      absl::StrFormat("worker '%s' announces a payload of %d bytes for fragment %d; %d values in codec %s "
                      "take %d",
                      worker, header.payload_bytes, header.key.fragment.value(), elements,
                      std::string(CodecName(header.codec)), expected));
}

}  // namespace

absl::StatusOr<Contributions::Admission> Contributions::AdmitPush(const MemberRef& caller,
                                                                  const PushHeader& header, MonoTime now,
                                                                  Effects& effects) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(member_calls_.Renew(caller, now, effects));
  // The store may be in the new epoch already, and would reject the upload permanently.
  if (acceptances_held_) return BeingRestored();
  const Member* member = core_.members.membership().Find(caller.worker);
  if (member->role != WorkerRole::kTrainer) {
    return absl::PermissionDeniedError(absl::StrFormat("'%s' joined as %s; only trainers contribute",
                                                       caller.worker,
                                                       std::string(WorkerRoleName(member->role))));
  }
  ATOLL_RETURN_IF_ERROR(core_.CheckFragment(header.key.fragment));
  if (core_.fragments.empty()) {
    return Reject(
        Rejection{
            .reason = RejectionReason::kNotSeeded, .metadata = {}, .retry_after = core_.options.heartbeat},
        "there is no version to contribute to: " + core_.SeedReason());
  }
  ATOLL_RETURN_IF_ERROR(core_.CheckModel(caller.worker));
  ATOLL_RETURN_IF_ERROR(core_.members.CheckData(caller.worker));
  if (header.key.sequence != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "worker '%s' sends sequence %d; one contribution per base is all this run takes, with sequence 0",
        caller.worker, header.key.sequence));
  }
  ATOLL_RETURN_IF_ERROR(CheckWork(caller.worker, header));
  FragmentRound& fragment = core_.fragments[header.key.fragment.value()];
  const ModelOptions& model = fragment.config().run.model;
  Admission admission{.contribution = ContributionOf(caller, header, model),
                      .claimed_position = header.samples_consumed,
                      .elements = fragment.layout().elements};
  if (!fragment.config().run.privacy.noisy()) admission.zero_gaps = fragment.shared_layout();
  // What a worker says of itself is capped by what it was assigned.
  ATOLL_RETURN_IF_ERROR(
      core_.members.assignments().Cap(*member, fragment.config().run, admission.contribution));
  const auto arrival = fragment.Check(admission.contribution);
  if (!arrival.ok()) {
    Missed(fragment, admission.contribution, admission.claimed_position, arrival.status(), now);
    return arrival.status();
  }
  ATOLL_RETURN_IF_ERROR(CheckForm(caller.worker, header, fragment.push_codecs(), admission.elements));
  ATOLL_RETURN_IF_ERROR(CheckLoss(caller.worker, header, model));
  admission.duplicate = *arrival == Round::Arrival::kDuplicate;
  admission.capped =
      header.tokens != admission.contribution.tokens || header.steps != admission.contribution.steps;
  Round* round = fragment.round();
  if (round != nullptr && !admission.duplicate && header.key.base == fragment.head()) {
    round->Pulled(caller.worker);
  }
  return admission;
}

void Contributions::Missed(FragmentRound& fragment, const Contribution& contribution,
                           uint64_t claimed_position, const absl::Status& rejection, MonoTime now) {
  if (ReasonOf(rejection) != RejectionReason::kStaleBase) return;
  core_.members.account(contribution.key.worker).last_pushes[contribution.key.fragment] = {
      .base = contribution.key.base, .counted = false};
  fragment.grace.CameLate(contribution.key.worker, contribution.key.base, now);
  const RunOptions& run = fragment.config().run;
  core_.members.assignments().Rejected(contribution, claimed_position,
                                       run.error_feedback && run.error_feedback_beta > 0);
}

absl::Status Contributions::BeginAccept(const MemberRef& caller, const Admission& admission, MonoTime now) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(core_.members.Check(caller));
  if (acceptances_held_) return BeingRestored();
  FragmentRound& fragment = core_.fragments[admission.contribution.key.fragment.value()];
  const absl::Status begun = fragment.BeginAccept(admission.contribution);
  if (!begun.ok()) Missed(fragment, admission.contribution, admission.claimed_position, begun, now);
  return begun;
}

PushResult Contributions::EndAccept(const Admission& admission, bool durable, MonoTime now,
                                    Effects& effects) {
  MutexLock lock(&core_.mutex);
  const Contribution& contribution = admission.contribution;
  FragmentRound& fragment = core_.fragments[contribution.key.fragment.value()];
  fragment.EndAccept(contribution, durable, now);
  acceptance_ended_.NotifyAll();
  if (durable) {
    WorkerAccount& account = core_.members.account(contribution.key.worker);
    ++account.accepted;
    account.last_pushes[contribution.key.fragment] = {.base = contribution.key.base, .counted = true};
    core_.members.assignments().Accepted(contribution, admission.claimed_position, now);
    fragment.grace.CameLate(contribution.key.worker, contribution.key.base, now);
    if (core_.members.NoteData(contribution.key.worker)) effects.members.push_back(contribution.key.worker);
  }
  PushResult result = ArrivalsLocked(fragment, now);
  const uint64_t trainers = core_.members.membership().live_count(WorkerRole::kTrainer);
  const uint64_t expected = ExpectedLateness(fragment.config().run.round.mode, trainers);
  result.late = contribution.key.base.value() + expected < fragment.head().value();
  return result;
}

PushResult Contributions::Arrivals(FragmentId fragment, MonoTime now) const {
  MutexLock lock(&core_.mutex);
  return ArrivalsLocked(core_.fragments[fragment.value()], now);
}

PushResult Contributions::ArrivalsLocked(const FragmentRound& fragment, MonoTime now) const {
  PushResult result;
  result.head = fragment.head();
  if (fragment.round() == nullptr) return result;
  const RoundView& view = fragment.round()->View(now, core_.members.membership());
  result.arrived = static_cast<uint32_t>(view.arrived.size());
  result.expected = static_cast<uint32_t>(view.arrived.size() + view.expected.size());
  return result;
}

void Contributions::CountPush(const WorkerName& worker, uint64_t bytes) {
  MutexLock lock(&core_.mutex);
  core_.statistics.CountPush(bytes);
  if (core_.members.membership().Find(worker) != nullptr) core_.members.account(worker).push_bytes += bytes;
}

bool Contributions::CountRejected(const WorkerName& worker, MonoTime now) {
  MutexLock lock(&core_.mutex);
  if (core_.members.membership().Find(worker) == nullptr) return rejected_strangers_.Allow(now);
  WorkerAccount& account = core_.members.account(worker);
  ++account.rejected;
  return account.rejections.Allow(now);
}

void Contributions::RejectedFor(Offence offence, const WorkerName& worker, const PushKey& push) {
  MutexLock lock(&core_.mutex);
  if (core_.members.membership().Find(worker) == nullptr || push.fragment.value() >= core_.fragments.size())
    return;
  core_.offences.Rejected(push.fragment, worker, offence);
  Round* const round = core_.fragments[push.fragment.value()].round();
  if (round != nullptr && round->base() == push.base) round->Rejected(worker);
}

absl::Status Contributions::CheckReplay(const Contribution& contribution) const {
  MutexLock lock(&core_.mutex);
  const FragmentRound& fragment = core_.fragments[contribution.key.fragment.value()];
  if (!fragment.config().run.offenders.measures()) return absl::OkStatus();
  const Contribution* earlier = fragment.past().FindSame(contribution);
  if (earlier == nullptr) return absl::OkStatus();
  return Reject(
      RejectionReason::kAlreadyPushed,
      absl::StrFormat("worker '%s' pushes for version %d the very bytes that it pushed for version %d",
                      contribution.key.worker, contribution.key.base.value(), earlier->key.base.value()));
}

absl::StatusOr<PushStatusReply> Contributions::PushStatus(const MemberRef& caller, const PushKey& key,
                                                          MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  ATOLL_RETURN_IF_ERROR(member_calls_.Renew(caller, now, effects));
  ATOLL_RETURN_IF_ERROR(core_.CheckFragment(key.fragment));
  PushStatusReply result;
  if (core_.fragments.empty()) return result;
  const FragmentRound& fragment = core_.fragments[key.fragment.value()];
  result.head = fragment.head();
  result.stage = fragment.StateOf(key.base, caller.worker);
  if (result.stage == PushStage::kMissed) {
    core_.members.account(caller.worker).last_pushes[key.fragment] = {.base = key.base, .counted = false};
  }
  return result;
}

void Contributions::HoldAcceptances() {
  MutexLock lock(&core_.mutex);
  acceptances_held_ = true;
}

void Contributions::ReleaseAcceptances() {
  MutexLock lock(&core_.mutex);
  acceptances_held_ = false;
}

absl::Status Contributions::AwaitAcceptances(Duration timeout) {
  const MonoTime deadline = SteadyNow() + timeout;
  MutexLock lock(&core_.mutex);
  while (std::ranges::any_of(core_.fragments, [](const FragmentRound& f) { return f.accepting() > 0; })) {
    if (!acceptance_ended_.WaitUntil(&core_.mutex, deadline)) {
      return absl::UnavailableError(
          "a contribution is being written to disk and does not come to an end; try again");
    }
  }
  return absl::OkStatus();
}

}  // namespace atl
