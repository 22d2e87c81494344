#include "server/members/member_registry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/status.h"
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

// A resync is void with the next pull of the head, which every round brings: asked again after a restart it
// would cost its worker a second round.
bool IsKept(CommandView command) {
  return command == CommandView::kDrain || command == CommandView::kRestart || command == CommandView::kStop;
}

PendingCommand CommandOf(const WorkerEntry& entry) {
  const auto command = static_cast<CommandView>(entry.order);
  if (entry.departed || !IsKept(command)) return {};
  return {.command = command, .at_once = entry.order_at_once};
}

// Of the accounts that are kept no trace is stored, so a lost worker is "lost" only until the next start.
MemberState StateOf(const WorkerEntry& entry) {
  if (entry.departed) return MemberState::kLeft;
  return CommandOf(entry).command == CommandView::kDrain ? MemberState::kDraining : MemberState::kActive;
}

}  // namespace

MemberRegistry::MemberRegistry(const RunConfigs* configs, const RunIdentity& identity)
    : configs_(configs),
      identity_(identity),
      membership_(OptionsFor(configs->run())),
      join_limiter_(configs->run().joins_per_s),
      observers_join_limiter_(configs->run().joins_per_s),
      assignments_(configs->run()) {}

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

void MemberRegistry::Restore(const std::vector<WorkerEntry>& workers,
                             const std::vector<PartitionEntry>& partitions, MonoTime now) {
  assignments_.Restore(partitions);
  std::vector<MemberRecord> records;
  Incarnation newest;
  for (const WorkerEntry& entry : workers) newest = std::max(newest, entry.incarnation);
  for (const WorkerEntry& entry : workers) {
    if (static_cast<WorkerRole>(entry.role) == WorkerRole::kObserver && !entry.banned) {
      // The record with the newest incarnation stays, so that none is issued twice.
      if (entry.incarnation != newest) stray_names_.push_back(entry.name);
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
    account.command = CommandOf(entry);
    account.last_seen_at = now;
    account.dataset_fingerprint = entry.dataset_fingerprint;
    account.data_counts = !entry.dataset_fingerprint.empty();
    account.public_key = entry.public_key;
    account.drained = entry.departed && static_cast<CommandView>(entry.order) == CommandView::kDrain;
    if (fingerprint_.empty() && account.data_counts) {
      fingerprint_ = entry.dataset_fingerprint;
      pinned_by_ = entry.name;
    }
    if (entry.banned) banned_.insert(entry.name);
  }
  membership_.Restore(records, Incarnation(newest.value() + 1), now);
}

void MemberRegistry::BeginEpoch(Epoch epoch, const std::vector<PartitionEntry>& partitions) {
  identity_.epoch = epoch;
  assignments_ = WorkAssignments(configs_->run());
  assignments_.Restore(partitions);
}

absl::Status MemberRegistry::CheckDataset(const JoinCall& call) const {
  if (!call.dataset || call.role == WorkerRole::kObserver) return absl::OkStatus();
  const DatasetView& dataset = *call.dataset;
  const auto mismatch = [&](const std::string& what) {
    return Reject(
        RejectionReason::kDatasetMismatch,
        absl::StrFormat("the token files of worker '%s' do not fit the run: %s", call.worker, what));
  };
  if (dataset.tokenizer != configs_->run().data.tokenizer) {
    return mismatch(absl::StrFormat("they were made by tokenizer '%s', the run uses '%s'", dataset.tokenizer,
                                    configs_->run().data.tokenizer));
  }
  if (dataset.vocabulary > configs_->run().model.vocabulary()) {
    return mismatch(absl::StrFormat("they have a vocabulary of %d, the model of %d", dataset.vocabulary,
                                    configs_->run().model.vocabulary()));
  }
  return CheckPin(call.worker, dataset.fingerprint);
}

absl::Status MemberRegistry::CheckPin(const WorkerName& worker, const std::string& fingerprint) const {
  const bool pinned = configs_->run().data.mode == DataMode::kShared && !fingerprint_.empty();
  if (!pinned || fingerprint.empty() || fingerprint == fingerprint_) return absl::OkStatus();
  return Reject(
      RejectionReason::kDatasetMismatch,
      absl::StrFormat("the token files of worker '%s' do not fit the run: their fingerprint is %s, that of "
                      "the first contribution, by worker '%s', is %s. If that worker had the wrong files, "
                      "call `atollctl run reset-data`",
                      worker, fingerprint, pinned_by_, fingerprint_));
}

absl::Status MemberRegistry::CheckData(const WorkerName& name) const {
  return CheckPin(name, DatasetOf(name));
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

std::vector<WorkerName> MemberRegistry::WithCountedData() const {
  std::vector<WorkerName> names;
  for (const auto& [name, account] : accounts_) {
    if (account.data_counts && membership_.Find(name) != nullptr) names.push_back(name);
  }
  return names;
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

std::vector<WorkerName> MemberRegistry::Drained() const {
  std::vector<WorkerName> names;
  for (const auto& [name, account] : accounts_) {
    const bool has_drained = account.drained && !membership_.IsLive(name);
    if (has_drained || account.command.command == CommandView::kDrain) names.push_back(name);
  }
  return names;
}

bool MemberRegistry::CancelDrain(const WorkerName& name) {
  const auto it = accounts_.find(name);
  if (it == accounts_.end()) return false;
  WorkerAccount& account = it->second;
  const bool ordered = account.command.command == CommandView::kDrain && !membership_.IsLive(name);
  if (ordered) account.command = PendingCommand{};
  return std::exchange(account.drained, false) || ordered;
}

absl::Status MemberRegistry::CheckJoin(const JoinCall& call, const std::string& manifest_hash, MonoTime now) {
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
  if (!manifest_hash.empty() && !call.manifest_hash.empty() && call.manifest_hash != manifest_hash) {
    return Reject(
        RejectionReason::kManifestMismatch,
        absl::StrFormat("the model of worker '%s' is not the run's: its manifest hashes to %s, the run's "
                        "to %s; build it from the run's configuration with the same software version",
                        call.worker, call.manifest_hash, manifest_hash));
  }
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
  account.capabilities = call.capabilities;
  account.manifest_hash = call.manifest_hash;
  account.public_key = call.public_key;
  account.drained = false;
  if (shared && call.dataset && account.dataset_fingerprint != call.dataset->fingerprint) {
    account.dataset_fingerprint = call.dataset->fingerprint;
    account.data_counts = false;
  }
  account.progress = ProgressView{};
  account.command = PendingCommand{};  // a new life has obeyed whatever the old one was told
  account.last_seen_at = account.joined_at = now;
  account.last_pushes.clear();
  if (call.role == WorkerRole::kTrainer) assignments_.Joined(*membership_.Find(call.worker));
  return outcome;
}

absl::Status MemberRegistry::CheckRun(const Caller& caller) const {
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

absl::Status MemberRegistry::Check(const Caller& caller) const {
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

absl::StatusOr<bool> MemberRegistry::Renew(const Caller& caller, MonoTime now) {
  ATOLL_RETURN_IF_ERROR(Check(caller));
  const bool was_lost = !membership_.IsLive(caller.worker);
  const absl::Status renewed = membership_.Renew(caller.worker, caller.incarnation, now);
  if (!renewed.ok()) return WithRetryAfter(renewed, configs_->run().round.lease);
  accounts_[caller.worker].last_seen_at = now;
  return was_lost;
}

std::optional<WorkerEntry> MemberRegistry::Entry(const WorkerName& name) const {
  const Member* member = membership_.Find(name);
  if (member == nullptr) return std::nullopt;
  const auto account = accounts_.find(name);
  const PendingCommand told = account == accounts_.end() ? PendingCommand() : account->second.command;
  const bool kept = member->live() && IsKept(told.command);
  // One that was lost before it obeyed stays drained.
  const bool drained = !member->live() && account != accounts_.end() &&
                       (account->second.drained || told.command == CommandView::kDrain);
  return WorkerEntry{.name = member->name,
                     .secret_hash = member->secret_hash,
                     .incarnation = member->incarnation,
                     .role = static_cast<uint8_t>(member->role),
                     .partition = member->partition,
                     .departed = !member->live(),
                     .banned = banned(name),
                     .public_key = PublicKey(name),
                     .dataset_fingerprint = CountedDataOf(name),
                     .order = static_cast<uint8_t>(kept      ? told.command
                                                   : drained ? CommandView::kDrain
                                                             : CommandView(0)),
                     .order_at_once = kept && told.at_once};
}

WorkerEntry MemberRegistry::EntryOfRemoved(WorkerEntry entry) const {
  if (membership_.Find(entry.name)->state == MemberState::kLeft) return entry;
  const auto account = accounts_.find(entry.name);
  const bool drained = account != accounts_.end() && account->second.drained;
  entry.departed = true;
  entry.order = static_cast<uint8_t>(drained ? CommandView::kDrain : CommandView(0));
  entry.order_at_once = false;
  return entry;
}

std::optional<WorkerEntry> MemberRegistry::Tombstone(const WorkerName& name) const {
  const Incarnation incarnation = membership_.Find(name)->incarnation;
  if (Incarnation(incarnation.value() + 1) != membership_.next_incarnation()) return std::nullopt;
  return WorkerEntry{.name = name,
                     .secret_hash = {},
                     .incarnation = incarnation,
                     .role = static_cast<uint8_t>(WorkerRole::kObserver),
                     .partition = std::nullopt,
                     .departed = true};
}

std::string MemberRegistry::DatasetOf(const WorkerName& name) const {
  const auto it = accounts_.find(name);
  return it == accounts_.end() ? std::string() : it->second.dataset_fingerprint;
}

// Only files that a contribution was made of may pin the run after a restart.
std::string MemberRegistry::CountedDataOf(const WorkerName& name) const {
  const auto it = accounts_.find(name);
  return it == accounts_.end() || !it->second.data_counts ? std::string() : it->second.dataset_fingerprint;
}

std::string MemberRegistry::PublicKey(const WorkerName& name) const {
  const auto it = accounts_.find(name);
  return it == accounts_.end() ? std::string() : it->second.public_key;
}

std::string MemberRegistry::manifest_hash(const WorkerName& name) const {
  const auto it = accounts_.find(name);
  return it == accounts_.end() ? std::string() : it->second.manifest_hash;
}

std::vector<WorkerName> MemberRegistry::Seeders() const {
  std::vector<WorkerName> seeders;
  for (const WorkerName& name : membership_.ActiveTrainers()) {
    if (!manifest_hash(name).empty()) seeders.push_back(name);
  }
  return seeders;
}

std::vector<WorkerName> MemberRegistry::Live(WorkerRole role) const {
  std::vector<const Member*> live = membership_.Live();
  std::erase_if(live, [role](const Member* member) { return member->role != role; });
  const auto order = [](const Member* member) {
    return member->partition.value_or(std::numeric_limits<uint32_t>::max());
  };
  std::ranges::stable_sort(live, {}, order);
  std::vector<WorkerName> names;
  for (const Member* member : live) names.push_back(member->name);
  return names;
}

absl::Status MemberRegistry::CheckForget(const WorkerName& name) const {
  if (banned(name)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the name '%s' is banned; forgotten, it could join again. Unban it first", name));
  }
  const Member* member = membership_.Find(name);
  if (member == nullptr || !member->live()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("worker '%s' is live; drain or evict it first", name));
}

absl::Status MemberRegistry::Forget(const WorkerName& name) {
  ATOLL_RETURN_IF_ERROR(CheckForget(name));
  ATOLL_RETURN_IF_ERROR(membership_.Forget(name));
  accounts_.erase(name);
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

PartitionView MemberRegistry::Partition(const Member& member) const {
  const uint32_t partition = member.partition.value_or(0);
  return {.partition = partition,
          .partitions = configs_->run().data.partitions,
          .samples_consumed = assignments_.shares().promised(partition)};
}

std::vector<WorkerView> MemberRegistry::Views(bool all, MonoTime now) const {
  std::vector<WorkerView> views;
  for (const Member* member : all ? membership_.All() : membership_.Live()) {
    views.push_back(View(*member, now));
  }
  return views;
}

WorkerView MemberRegistry::View(const Member& member, MonoTime now) const {
  const auto it = accounts_.find(member.name);
  const WorkerAccount account = it == accounts_.end() ? WorkerAccount{} : it->second;
  WorkerView view;
  view.name = member.name;
  view.incarnation = member.incarnation;
  view.role = static_cast<uint8_t>(member.role);
  view.state = std::string(MemberStateName(member.state));
  if (member.live()) view.lease_remaining_s = std::max(0.0, ToSeconds(member.lease_expires_at - now));
  view.capabilities = account.capabilities;
  if (member.partition) {
    view.data = Partition(member);
    view.data->samples_consumed = assignments_.shares().consumed(*member.partition);
  }
  view.inner_steps = assignments_.steps(member.name);
  view.steps_per_second = assignments_.steps_per_second(member.name);
  view.progress = account.progress;
  view.seconds_since_heartbeat = ToSeconds(now - account.last_seen_at);
  view.contributions_accepted = account.accepted;
  view.contributions_refused = account.rejected;
  view.push_bytes = account.push_bytes;
  view.pull_bytes = account.pull_bytes;
  view.banned = banned(member.name);
  view.pending_command = account.command.command;
  return view;
}

double MemberRegistry::ReportedPace() const {
  double sum = 0;
  for (const WorkerName& name : Live(WorkerRole::kTrainer)) {
    const auto it = accounts_.find(name);
    if (it != accounts_.end()) sum += it->second.progress.tokens_per_second;
  }
  return sum;
}

std::optional<MonoTime> MemberRegistry::MostJoinedAfter(MonoTime since,
                                                        const std::vector<WorkerName>& names) const {
  size_t joined = 0;
  MonoTime last = since;
  for (const WorkerName& name : names) {
    const auto it = accounts_.find(name);
    if (it == accounts_.end() || it->second.joined_at <= since) continue;
    ++joined;
    last = std::max(last, it->second.joined_at);
  }
  return joined > 0 && 2 * joined >= names.size() ? std::optional(last) : std::nullopt;
}

uint32_t MemberRegistry::live_others() const {
  return static_cast<uint32_t>(membership_.counts().live - membership_.live_count(WorkerRole::kTrainer));
}

uint32_t MemberRegistry::lost() const { return static_cast<uint32_t>(membership_.counts().lost); }

}  // namespace atl
