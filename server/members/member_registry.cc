#include "server/members/member_registry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/status.h"
#include "core/tokenizer_names.h"
#include "server/members/member_lists.h"
#include "server/new_model.h"
#include "server/rejection.h"

namespace atl {
namespace {

constexpr size_t kMinSecret = 16;
constexpr size_t kMaxSecret = 64;

MembershipOptions OptionsFor(const RunOptions& run) {
  return {.lease = run.round.lease,
          .max_workers = run.max_workers,
          .partitions = run.data.mode == DataMode::kShared ? run.data.partitions : 0};
}

bool Connected(const Member& member, const std::string& secret_hash, MonoTime now) {
  return member.live() && now < member.lease_expires_at && member.secret_hash != secret_hash;
}

PendingCommand CommandOf(const WorkerEntry& entry) {
  const auto command = static_cast<WorkerCommand>(entry.command);
  if (entry.departed || !PendingCommand{.command = command}.kept()) return {};
  return {.command = command, .at_once = entry.command_at_once};
}

// Of the accounts that are kept no trace is stored, so a lost worker is "lost" only until the next start.
MemberState StateOf(const WorkerEntry& entry) {
  if (entry.departed) return MemberState::kLeft;
  return CommandOf(entry).command == WorkerCommand::kDrain ? MemberState::kDraining : MemberState::kActive;
}

}  // namespace

MemberRegistry::MemberRegistry(const RunConfigs* configs, const RunIdentity& identity, uint32_t max_ranks)
    : configs_(configs),
      identity_(identity),
      membership_(OptionsFor(configs->run())),
      join_limiter_(configs->run().joins_per_s),
      observers_join_limiter_(configs->run().joins_per_s),
      assignments_(configs->run(), max_ranks) {}

void MemberRegistry::Configured() {
  const RunOptions& run = configs_->run();
  membership_.set_max_workers(run.max_workers);
  membership_.set_lease(run.round.lease);
  join_limiter_.SetRate(run.joins_per_s);
  observers_join_limiter_.SetRate(run.joins_per_s);
}

absl::Status MemberRegistry::EnterJoin(const JoinCall& call, MonoTime now) {
  JoinRateLimiter& limiter = call.role == WorkerRole::kObserver ? observers_join_limiter_ : join_limiter_;
  const std::optional<Duration> wait = limiter.Enter(call.address, now);
  if (!wait) return absl::OkStatus();
  return Reject(Rejection{.reason = RejectionReason::kOverBudget, .metadata = {}, .retry_after = *wait},
                absl::StrFormat("more than %g joins a second (limits.joins_per_s); try again in %.0f s",
                                configs_->run().joins_per_s, ToSeconds(*wait)));
}

std::vector<WorkerName> MemberRegistry::Restore(const std::vector<WorkerEntry>& workers,
                                                const std::vector<PartitionEntry>& partitions, MonoTime now) {
  std::vector<WorkerName> strays;
  assignments_.Restore(partitions);
  std::vector<MemberRecord> records;
  Incarnation newest;
  for (const WorkerEntry& entry : workers) newest = std::max(newest, entry.incarnation);
  for (const WorkerEntry& entry : workers) {
    if (static_cast<WorkerRole>(entry.role) == WorkerRole::kObserver && !entry.banned) {
      // The record with the newest incarnation stays, so that none is issued twice.
      if (entry.incarnation != newest) strays.push_back(entry.name);
      continue;
    }
    MemberRecord record{.name = entry.name,
                        .secret_hash = entry.secret_hash,
                        .role = static_cast<WorkerRole>(entry.role),
                        .incarnation = entry.incarnation,
                        .partition = entry.partition,
                        .state = StateOf(entry)};
    records.push_back(std::move(record));
    WorkerAccount& account = accounts_[entry.name];
    if (const PendingCommand told = CommandOf(entry); told.kept()) commands_[entry.name] = told;
    account.last_seen_at = now;
    account.dataset_fingerprint = entry.dataset_fingerprint;
    account.data_counts = !entry.dataset_fingerprint.empty();
    account.public_key = entry.public_key;
    account.drained = entry.departed && static_cast<WorkerCommand>(entry.command) == WorkerCommand::kDrain;
    if (fingerprint_.empty() && account.data_counts) {
      fingerprint_ = entry.dataset_fingerprint;
      pinned_by_ = entry.name;
    }
    if (entry.banned) banned_.insert(entry.name);
  }
  membership_.Restore(records, Incarnation(newest.value() + 1), now);
  return strays;
}

void MemberRegistry::BeginEpoch(Epoch epoch, const std::vector<PartitionEntry>& partitions) {
  identity_.epoch = epoch;
  assignments_ = WorkAssignments(configs_->run(), assignments_.max_ranks());
  assignments_.Restore(partitions);
}

absl::Status MemberRegistry::CheckModel(const JoinCall& call, const RunModel& model) const {
  if (!model.known() && call.manifest) {
    const RunOptions& run = configs_->run();
    const absl::Status fits = LayOutFirstModel(run, run.sync.fragments, *call.manifest).status();
    if (!fits.ok()) {
      return Reject(RejectionReason::kManifestMismatch,
                    absl::StrFormat("the run cannot begin with the model of worker '%s': %s", call.worker,
                                    std::string(fits.message())));
    }
  }
  if (!model.known() || call.manifest_hash.empty() || call.manifest_hash == model.hash()) {
    return absl::OkStatus();
  }
  if (call.manifest) return RejectModel(call.worker, model, *call.manifest);
  const ExternalOptions* const external = configs_->run().model.external();
  const char* remedy = "build it from the run's configuration with the same software version";
  if (external != nullptr) {
    remedy =
        external->script.empty()
            ? "send the manifest with the Join to be told what differs"
            : "every worker needs the same TorchScript file, byte for byte; sha256sum shows whose differs";
  }
  return Reject(RejectionReason::kManifestMismatch,
                absl::StrFormat(
                    "the model of worker '%s' is not the run's: its manifest hashes to %s, the run's to %s; "
                    "%s",
                    call.worker, call.manifest_hash, model.hash(), remedy));
}

absl::Status MemberRegistry::CheckDataset(const JoinCall& call) const {
  if (!call.dataset || call.role == WorkerRole::kObserver) return absl::OkStatus();
  const DatasetSummary& dataset = *call.dataset;
  const auto mismatch = [&](const std::string& what) {
    return Reject(RejectionReason::kDatasetMismatch,
                  absl::StrFormat("the data of worker '%s' does not fit the run: %s", call.worker, what));
  };
  const std::string& tokenizer = configs_->run().data.tokenizer;
  // Without a tokenizer the worker's data are no token files: only their fingerprint can be compared.
  const bool compared = tokenizer != kNoTokenizer && !dataset.tokenizer.empty();
  if (compared && dataset.tokenizer != tokenizer) {
    return mismatch(absl::StrFormat("its token files were made by tokenizer '%s', the run uses '%s'",
                                    dataset.tokenizer, tokenizer));
  }
  const uint32_t vocabulary = configs_->run().model.vocabulary();
  if (vocabulary > 0 && dataset.vocabulary > vocabulary) {
    return mismatch(absl::StrFormat("its token files have a vocabulary of %d, the model of %d",
                                    dataset.vocabulary, vocabulary));
  }
  return CheckPin(call.worker, dataset.fingerprint);
}

absl::Status MemberRegistry::CheckPin(const WorkerName& worker, const std::string& fingerprint) const {
  const bool pinned = configs_->run().data.mode == DataMode::kShared && !fingerprint_.empty();
  if (!pinned || fingerprint.empty() || fingerprint == fingerprint_) return absl::OkStatus();
  return Reject(
      RejectionReason::kDatasetMismatch,
      absl::StrFormat(
          "the data of worker '%s' does not fit the run: its fingerprint is '%s', that of the first "
          "contribution, by worker '%s', is '%s'. If that worker had the wrong data, call "
          "`atollctl run reset-data`",
          worker, fingerprint, pinned_by_, fingerprint_));
}

absl::Status MemberRegistry::CheckData(const WorkerName& name) const {
  return CheckPin(name, FindAccount(name).dataset_fingerprint);
}

bool MemberRegistry::NoteData(const WorkerName& name) {
  WorkerAccount& account = accounts_[name];
  if (configs_->run().data.mode != DataMode::kShared || account.data_counts ||
      account.dataset_fingerprint.empty())
    return false;
  account.data_counts = true;
  if (fingerprint_.empty()) {
    fingerprint_ = account.dataset_fingerprint;
    pinned_by_ = name;
  }
  return true;
}

std::vector<WorkerName> MemberRegistry::ForgetData() {
  std::vector<WorkerName> changed;
  for (auto& [name, account] : accounts_) {
    if (std::exchange(account.data_counts, false)) changed.push_back(name);
  }
  fingerprint_.clear();
  pinned_by_.clear();
  return changed;
}

const WorkerAccount& MemberRegistry::FindAccount(const WorkerName& name) const {
  static const WorkerAccount kNone;
  const auto it = accounts_.find(name);
  return it == accounts_.end() ? kNone : it->second;
}

absl::Status MemberRegistry::CheckJoin(const JoinCall& call, const RunModel& model, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(ValidateWorkerName(call.worker));
  if (banned(call.worker)) {
    return Reject(RejectionReason::kBanned,
                  absl::StrFormat(
                      "the name '%s' is banned from this run, by an operator or by rule; it is refused until "
                      "`atollctl workers unban %s`",
                      call.worker, call.worker));
  }
  if (call.secret.size() < kMinSecret || call.secret.size() > kMaxSecret) {
    return absl::InvalidArgumentError(
        absl::StrFormat("worker '%s' sent a secret of %d bytes; %d to %d are allowed", call.worker,
                        call.secret.size(), kMinSecret, kMaxSecret));
  }
  if (!call.expected_run.empty() && call.expected_run != identity_.run_id &&
      call.expected_run != identity_.name) {
    return Reject(RejectionReason::kWrongRun,
                  absl::StrFormat("worker '%s' wants run '%s'; this coordinator serves run '%s' (%s)",
                                  call.worker, call.expected_run, identity_.name, identity_.run_id));
  }
  const Member* known = membership_.Find(call.worker);
  const bool member = call.role != WorkerRole::kObserver;
  if (member && known != nullptr && Connected(*known, Sha256Hex(call.secret), now)) {
    return Reject(
        RejectionReason::kNameTaken,
        absl::StrFormat("another live worker has the name '%s'; choose another name, or start with that "
                        "worker's state directory if this is the same worker",
                        call.worker));
  }
  ATOLL_RETURN_IF_ERROR(CheckModel(call, model));
  return CheckDataset(call);
}

absl::StatusOr<JoinOutcome> MemberRegistry::Join(const JoinCall& call, MonoTime now) {
  auto outcome = membership_.Join(call.worker, Sha256Hex(call.secret), call.role, now);
  if (!outcome.ok()) {
    if (absl::IsAlreadyExists(outcome.status())) {
      return Reject(RejectionReason::kNameTaken, std::string(outcome.status().message()));
    }
    if (absl::IsResourceExhausted(outcome.status()))
      return WithRetryAfter(outcome.status(), configs_->run().round.lease);
    return outcome.status();
  }
  const bool shared = configs_->run().data.mode == DataMode::kShared && call.role != WorkerRole::kObserver;
  WorkerAccount& account = accounts_[call.worker];
  if (!outcome->returning) account = WorkerAccount{};
  account.device = call.device;
  assignments_.SetRanks(call.worker, call.device.ranks);
  account.manifest_hash = call.manifest_hash;
  account.public_key = call.public_key;
  account.drained = false;
  if (shared && call.dataset && account.dataset_fingerprint != call.dataset->fingerprint) {
    account.dataset_fingerprint = call.dataset->fingerprint;
    account.data_counts = false;
  }
  account.progress = ProgressReport{};
  const PendingCommand told = command(call.worker);
  const bool obeyed = told.ends_with_a_new_life() || !outcome->returning;
  SetCommand(call.worker, obeyed ? PendingCommand{} : told);
  account.last_seen_at = account.joined_at = now;
  account.last_pushes.clear();
  if (call.role == WorkerRole::kTrainer) assignments_.Joined(*membership_.Find(call.worker));
  return outcome;
}

absl::Status MemberRegistry::CheckRun(const MemberRef& caller) const {
  if (caller.run_id != identity_.run_id) {
    return Reject(RejectionReason::kWrongRun,
                  absl::StrFormat("worker '%s' calls run %s; this coordinator serves run %s ('%s')",
                                  caller.worker, caller.run_id, identity_.run_id, identity_.name));
  }
  if (caller.epoch != identity_.epoch) {
    return WrongEpoch(caller.worker, caller.epoch, identity_.epoch);
  }
  return absl::OkStatus();
}

absl::Status MemberRegistry::Check(const MemberRef& caller) const {
  ATOLL_RETURN_IF_ERROR(CheckRun(caller));
  if (caller.observes()) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "'%s' joined as observer, which only looks; only trainers contribute", caller.worker));
  }
  // Incarnations are issued from 1 on: 0 is a worker that asked for the configuration and has not joined yet.
  const absl::Status current = caller.incarnation == Incarnation(0)
                                   ? absl::NotFoundError("the worker has not joined yet")
                                   : membership_.CheckCurrent(caller.worker, caller.incarnation);
  if (absl::IsNotFound(current)) return Reject(RejectionReason::kNotAMember, std::string(current.message()));
  if (!current.ok()) return Reject(RejectionReason::kSuperseded, std::string(current.message()));
  return absl::OkStatus();
}

absl::StatusOr<bool> MemberRegistry::Renew(const MemberRef& caller, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(Check(caller));
  const bool was_lost = !membership_.IsLive(caller.worker);
  const absl::Status renewed = membership_.Renew(caller.worker, caller.incarnation, now);
  if (!renewed.ok()) return WithRetryAfter(renewed, configs_->run().round.lease);
  accounts_[caller.worker].last_seen_at = now;
  return was_lost;
}

PendingCommand MemberRegistry::command(const WorkerName& name) const {
  const auto told = commands_.find(name);
  return told == commands_.end() ? PendingCommand{} : told->second;
}

void MemberRegistry::SetCommand(const WorkerName& name, const PendingCommand& command) {
  if (command.command == WorkerCommand::kNone) {
    commands_.erase(name);
  } else {
    commands_.insert_or_assign(name, command);
  }
  membership_.SetDraining(name, command.command == WorkerCommand::kDrain);
}

absl::Status MemberRegistry::Forget(const WorkerName& name) {
  ATOLL_RETURN_IF_ERROR(CheckForget(*this, name));
  ATOLL_RETURN_IF_ERROR(membership_.Forget(name));
  accounts_.erase(name);
  commands_.erase(name);
  assignments_.Forget(name);
  return absl::OkStatus();
}

std::vector<WorkerName> MemberRegistry::Forgettable(Duration age, size_t limit, MonoTime now) const {
  if (now - MonoTime{} <= age) return {};
  // Banned names stay; there are few of them, and they must not hide those behind them.
  std::vector<WorkerName> names = membership_.DepartedBefore(now - age, limit + banned_.size());
  std::erase_if(names, [this](const WorkerName& name) { return banned(name); });
  if (names.size() > limit) names.resize(limit);
  return names;
}

void MemberRegistry::SetBanned(const WorkerName& name, bool banned) {
  if (banned) {
    banned_.insert(name);
  } else {
    banned_.erase(name);
  }
}

}  // namespace atl
