#include "client/sync/worker_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "client/sync/state_file.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {
namespace {

constexpr size_t kRoundsKept = 2;
constexpr std::string_view kRoundPrefix = "round-";

// Marks of a push file.
constexpr uint8_t kOpenMark = 0;
constexpr uint8_t kVoidMark = 0xff;  // a newer push could not be kept
uint8_t MarkOf(Verdict verdict) { return static_cast<uint8_t>(static_cast<uint8_t>(verdict) + 1); }
std::optional<Verdict> VerdictOf(uint8_t mark) {
  if (mark == kOpenMark || mark > MarkOf(Verdict::kNotFinite)) return std::nullopt;
  return static_cast<Verdict>(mark - 1);
}

void PutOwner(StateFileWriter& file, const StateOwner& owner) {
  file.Text(owner.run_id);
  file.Text(owner.worker);
  file.Text(owner.manifest_hash);
}

StateOwner TakeOwner(StateFileReader& file) {
  StateOwner owner;
  owner.run_id = file.Text();
  owner.worker = file.Text();
  owner.manifest_hash = file.Text();
  return owner;
}

absl::Status CheckOwner(const std::string& path, const StateOwner& found, const StateOwner& owner) {
  if (found.run_id != owner.run_id) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is of run %s, this is run %s", path, found.run_id, owner.run_id));
  }
  if (found.worker != owner.worker) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is of worker '%s', this is '%s'", path, found.worker, owner.worker));
  }
  if (found.manifest_hash != owner.manifest_hash) {
    return absl::FailedPreconditionError(absl::StrFormat("%s is of another model", path));
  }
  return absl::OkStatus();
}

void PutReplica(StateFileWriter& file, const ReplicaState& state) {
  file.Text(state.kind);
  file.Number(state.optimizer_steps);
  file.Number(state.partition);
  file.Number(state.partitions);
  file.Number(state.samples_consumed);
  file.Text(state.random);
  file.Number(static_cast<uint32_t>(state.moments.size()));
  for (const std::vector<float>& moment : state.moments) file.Vector(std::span<const float>(moment));
  // A release without this field reads files that have none.
  if (!state.opaque.empty()) file.Vector(std::span<const std::byte>(state.opaque));
}

ReplicaState TakeReplica(StateFileReader& file) {
  ReplicaState state;
  state.kind = file.Text();
  state.optimizer_steps = file.Number<uint64_t>();
  state.partition = file.Number<uint32_t>();
  state.partitions = file.Number<uint32_t>();
  state.samples_consumed = file.Number<uint64_t>();
  state.random = file.Text();
  const auto moments = file.Number<uint32_t>();
  // A count that is not true ends with the file.
  for (uint32_t i = 0; i < moments && i < 16; ++i) state.moments.push_back(file.Vector<float>());
  if (!file.AtEnd()) state.opaque = file.Vector<std::byte>();
  return state;
}

void PutOffer(StateFileWriter& file, const PushHeader& header) {
  file.Number(header.key.fragment.value());
  file.Number(header.key.base.value());
  file.Number(header.key.sequence);
  file.Number(static_cast<uint8_t>(header.codec));
  file.Number(header.payload_crc32c);
  file.Number(header.tokens);
  file.Number(header.steps);
  file.Number(static_cast<uint8_t>(header.partition.has_value()));
  file.Number(header.partition.value_or(0));
  file.Number(header.samples_consumed);
  file.Number(header.mean_loss);
}

PushHeader TakeOffer(StateFileReader& file) {
  PushHeader header;
  header.key.fragment = FragmentId(file.Number<uint32_t>());
  header.key.base = Version(file.Number<uint64_t>());
  header.key.sequence = file.Number<uint32_t>();
  header.codec = static_cast<CodecKind>(file.Number<uint8_t>());
  header.payload_crc32c = file.Number<uint32_t>();
  header.tokens = file.Number<uint64_t>();
  header.steps = file.Number<uint32_t>();
  const bool shared = file.Number<uint8_t>() != 0;
  const auto partition = file.Number<uint32_t>();
  if (shared) header.partition = partition;
  header.samples_consumed = file.Number<uint64_t>();
  header.mean_loss = file.Number<double>();
  return header;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerCheckpoint>> WorkerCheckpoint::Open(const std::string& folder,
                                                                         StateOwner owner,
                                                                         const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  std::unique_ptr<WorkerCheckpoint> state(new WorkerCheckpoint(folder, std::move(owner), log));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, state->RoundNumbers());
  if (!numbers.empty()) state->next_number_ = numbers.back() + 1;
  return state;
}

std::string WorkerCheckpoint::RoundPath(uint64_t number) const {
  return JoinPath(folder_, absl::StrFormat("%s%06d", std::string(kRoundPrefix), number));
}

std::string WorkerCheckpoint::PushPath(FragmentId fragment) const {
  return JoinPath(folder_, absl::StrFormat("push-%d", fragment.value()));
}

absl::StatusOr<std::vector<uint64_t>> WorkerCheckpoint::RoundNumbers() const {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder_));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (name.rfind(kRoundPrefix, 0) == 0 && absl::SimpleAtoi(name.substr(kRoundPrefix.size()), &number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

RoundCheckpoint* WorkerCheckpoint::BeginRound() {
  const MutexLock lock(&mutex_);
  return saving_ ? nullptr : &buffer_;
}

void WorkerCheckpoint::SaveRound() {
  {
    const MutexLock lock(&mutex_);
    saving_ = true;
  }
  const bool posted = queue_.Post([this] {
    Complain(WriteRound(buffer_));
    const MutexLock lock(&mutex_);
    saving_ = false;
  });
  if (!posted) log_.Debug("the worker's state is not saved: it is ending");
}

void WorkerCheckpoint::Flush() { queue_.Drain(); }

void WorkerCheckpoint::Complain(const absl::Status& error) {
  if (!error.ok() && !failing_) {
    log_.Warning("the worker's state cannot be saved; killed now, it would come back with an older one",
                 {{"error", Explain(error)}});
  } else if (error.ok() && failing_) {
    log_.Info("the worker's state is being saved again");
  }
  failing_ = !error.ok();
}

absl::Status WorkerCheckpoint::WriteRound(const RoundCheckpoint& round) {
  ATOLL_ASSIGN_OR_RETURN(StateFileWriter file,
                         StateFileWriter::Create(RoundPath(next_number_), StateFileKind::kRound));
  PutOwner(file, owner_);
  file.Number(round.epoch.value());
  file.Number(round.base.value());
  file.Number(round.committed_tokens);
  file.Number(round.optimizer_warmup_steps);
  file.Number(round.optimizer_warmup_left);
  PutReplica(file, round.replica);
  ATOLL_RETURN_IF_ERROR(file.Commit());
  ++next_number_;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, RoundNumbers());
  for (size_t i = 0; i + kRoundsKept < numbers.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(RemoveFile(RoundPath(numbers[i])));
  }
  return absl::OkStatus();
}

absl::StatusOr<RoundCheckpoint> WorkerCheckpoint::ReadRound(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(StateFileReader file, StateFileReader::Open(path, StateFileKind::kRound));
  const StateOwner found = TakeOwner(file);
  if (!found.run_id.empty() && found.run_id != owner_.run_id) other_run_ = found.run_id;
  ATOLL_RETURN_IF_ERROR(CheckOwner(path, found, owner_));
  RoundCheckpoint round;
  round.epoch = Epoch(file.Number<uint64_t>());
  round.base = Version(file.Number<uint64_t>());
  round.committed_tokens = file.Number<uint64_t>();
  round.optimizer_warmup_steps = file.Number<uint32_t>();
  round.optimizer_warmup_left = file.Number<uint32_t>();
  round.replica = TakeReplica(file);
  ATOLL_RETURN_IF_ERROR(file.Finish());
  return round;
}

absl::StatusOr<RoundCheckpoint> WorkerCheckpoint::LoadRound() {
  Flush();
  other_run_.clear();
  ATOLL_ASSIGN_OR_RETURN(std::vector<uint64_t> numbers, RoundNumbers());
  if (numbers.empty()) return absl::NotFoundError(absl::StrFormat("nothing is kept in %s", folder_));
  std::reverse(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    auto round = ReadRound(RoundPath(number));
    if (round.ok()) return round;
    log_.Warning("a kept state cannot be used", {{"error", Explain(round.status())}});
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("%s holds no usable state of this worker in this run", folder_));
}

absl::Status WorkerCheckpoint::WritePush(Epoch epoch, const PushHeader& header,
                                         std::span<const std::byte> payload,
                                         std::span<const float> residual) {
  const std::string path = PushPath(header.key.fragment);
  const bool zero = std::all_of(residual.begin(), residual.end(), [](float value) { return value == 0; });
  const auto write = [&]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(StateFileWriter file, StateFileWriter::Create(path, StateFileKind::kPush));
    PutOwner(file, owner_);
    file.Number(epoch.value());
    PutOffer(file, header);
    file.Vector(payload);
    file.Vector(zero ? std::span<const float>() : residual);
    return file.Commit();
  };
  {
    const MutexLock lock(&mutex_);
    recorded_.erase(header.key.fragment);
  }
  const absl::Status written = write();
  if (!written.ok()) {
    VoidPush(path);
    return written;
  }
  const MutexLock lock(&mutex_);
  recorded_[header.key.fragment] = {header.key, header.payload_crc32c};
  return absl::OkStatus();
}

void WorkerCheckpoint::VoidPush(const std::string& path) const {
  const absl::Status removed = RemoveFile(path);
  if (removed.ok()) return;
  const absl::Status marked = MarkStateFile(path, kVoidMark);
  if (marked.ok()) return;
  log_.Warning(
      "the record of an earlier contribution can be neither removed nor marked as void; remove it "
      "before the worker starts again, or its residual, which is in a newer contribution, counts twice",
      {{"file", path}, {"removing", Explain(removed)}, {"marking", Explain(marked)}});
}

absl::Status WorkerCheckpoint::SettlePush(const PushKey& push, uint32_t payload_crc32c, Verdict verdict) {
  const std::string path = PushPath(push.fragment);
  {
    const MutexLock lock(&mutex_);
    const auto recorded = recorded_.find(push.fragment);
    if (recorded == recorded_.end() || recorded->second != Recorded{push, payload_crc32c}) {
      return absl::NotFoundError(
          absl::StrFormat("%s does not hold the contribution to version %d", path, push.base.value()));
    }
  }
  return MarkStateFile(path, MarkOf(verdict));
}

absl::StatusOr<PushRecord> WorkerCheckpoint::LoadPush(FragmentId fragment) {
  const std::string path = PushPath(fragment);
  ATOLL_ASSIGN_OR_RETURN(StateFileReader file, StateFileReader::Open(path, StateFileKind::kPush));
  ATOLL_RETURN_IF_ERROR(CheckOwner(path, TakeOwner(file), owner_));
  PushRecord push;
  push.epoch = Epoch(file.Number<uint64_t>());
  push.header = TakeOffer(file);
  push.payload = file.Vector<std::byte>();
  push.header.payload_bytes = push.payload.size();
  push.residual = file.Vector<float>();
  push.verdict = VerdictOf(file.mark());
  ATOLL_RETURN_IF_ERROR(file.Finish());
  if (push.header.key.fragment != fragment || FindCodec(push.header.codec) == nullptr ||
      Crc32c(push.payload) != push.header.payload_crc32c) {
    return absl::DataLossError(absl::StrFormat("%s contradicts itself", path));
  }
  if (file.mark() == kVoidMark) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is void: the contribution after it could not be kept", path));
  }
  const MutexLock lock(&mutex_);
  recorded_[fragment] = {push.header.key, push.header.payload_crc32c};
  return push;
}

}  // namespace atl
