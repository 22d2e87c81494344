#include "tests/guard/seeded_run.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "core/fragment_plan.h"
#include "protos/config/run_config.h"
#include "server/admin/admin_control.h"

namespace atl {
namespace {

constexpr int kWorkers = 4;
constexpr int kMostTurns = 200000;
constexpr Duration kLongestSettling = Seconds(60);  // of real time: more is a defect
const AdminCaller kOperator{.user = "guard", .peer = "test"};

/// Bytes of anything, one after the other.
class Trail {
 public:
  template <typename T>
  void Add(T value) {
    static_assert(std::is_arithmetic_v<T>);
    hash_.Update({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  void Add(const std::string& text) {
    Add(uint64_t{text.size()});
    hash_.Update(text);
  }
  void Add(const ContentHash& hash) {
    Add(hash.low);
    Add(hash.high);
  }
  void Add(const std::vector<float>& values) {
    hash_.Update({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  /// Enough digits to see a difference.
  std::string Digest() { return hash_.FinishHex().substr(0, 16); }

 private:
  Sha256 hash_;
};

CoordinatorOptions OptionsOf(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "guard");
  CoordinatorOptions options;
  options.run = ToRunOptions(config.value()).value();
  options.config_bytes = config->SerializeAsString();
  options.fragments = options.run.sync.fragments;
  options.tick = Seconds(0.0002);
  options.storage_retry = Seconds(0.001);
  options.merge_threads = 1;
  return options;
}

}  // namespace

struct SeededRun::Trails {
  Trail versions;
  Trail rounds;
  Trail tensors;
  Trail residuals;
  Trail state_files;
};

MonoTime StepCountingClock::Now() const {
  char name[16] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 && std::string_view(name) == "rounds") {
    ++steps_;
  }
  return FakeClock::Now();
}

std::string RunTrace::Line() const {
  std::string line = absl::StrFormat("heads=%d versions=%s rounds=%s tensors=%s residuals=%s state_files=%s",
                                     heads, versions, rounds, tensors, residuals, state_files);
  for (const auto& [kind, count] : faults) absl::StrAppend(&line, " ", kind, "=", count);
  return line;
}

SeededRun::SeededRun(const std::string& yaml, uint64_t seed, const std::string& folder)
    : folder_(folder), random_(seed), options_(OptionsOf(yaml)) {
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  link_.turnstile = &turnstile_;
  link_.settle = [this] { Settle(); };
}

SeededRun::~SeededRun() {
  for (auto& [name, seat] : seats_) {
    if (seat.life != nullptr && !seat.life->ended()) seat.life->Kill();
  }
  seats_.clear();
  std::error_code ignored;  // what is left over lies in a temporary folder
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status SeededRun::BeginRun() {
  ATOLL_ASSIGN_OR_RETURN(const auto store, OpenMemoryStore(checkpoint_));
  // An identity that a coordinator would draw at random stands in the workers' state files.
  const RunIdentity identity{.run_id = "0123456789abcdef",
                             .name = options_.run.name,
                             .epoch = Epoch(42),
                             .shards = options_.run.shards,
                             .chunk_elements = options_.chunk_elements};
  return store->CreateRun(identity, {.version = 1, .author = "start", .bytes = options_.config_bytes});
}

absl::Status SeededRun::OpenCoordinator() {
  for (std::atomic<bool>* rejected : {&faults_->seed, &faults_->commit, &faults_->store, &faults_->upload,
                                      &faults_->accept, &faults_->member}) {
    *rejected = false;
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, OpenMemoryStore(checkpoint_));
  CoordinatorDeps deps;
  deps.store = std::make_unique<FaultyStore>(std::move(store), faults_);
  deps.clock = &clock_;
  deps.config_codec = &codec_;
  ATOLL_ASSIGN_OR_RETURN(coordinator_, CreateCoordinator(options_, std::move(deps)));
  link_.coordinator = coordinator_.get();
  ++link_.life;
  Settle();
  return absl::OkStatus();
}

void SeededRun::CloseCoordinator(bool crash) {
  if (crash) {
    for (std::atomic<bool>* rejected : {&faults_->seed, &faults_->commit, &faults_->store, &faults_->upload,
                                        &faults_->accept, &faults_->member}) {
      *rejected = true;
    }
  }
  for (auto& [name, seat] : seats_) {
    if (seat.life != nullptr) seat.life->connection().DropUploads();
  }
  link_.coordinator = nullptr;
  coordinator_.reset();
}

bool SeededRun::Quiet() {
  for (const FragmentStatusView& fragment : coordinator_->GetStatus(0).fragments) {
    if (absl::StrContains(fragment.waiting_for, "being committed")) return false;
    if (faults_->store) continue;
    const bool waits_for_storage = absl::StrContains(fragment.waiting_for, "tensors");
    if (fragment.stored != fragment.version || waits_for_storage) return false;
  }
  return true;
}

void SeededRun::Settle() {
  if (coordinator_ == nullptr) return;
  const MonoTime deadline = SystemClock().Now() + kLongestSettling;
  // A step looks at the clock once for each fragment, and more often when it makes a version. After so many
  // looks a whole step began and ended after the call, unless it makes a version: then it shows as being
  // committed.
  const uint64_t looks = 2 * options_.fragments + 2;
  uint64_t heads = Heads();
  while (SystemClock().Now() < deadline) {
    const uint64_t until = clock_.steps() + looks;
    while (clock_.steps() < until && SystemClock().Now() < deadline && Seeded()) std::this_thread::yield();
    const uint64_t now = Heads();
    if (now == heads && Quiet()) return;
    heads = now;
  }
  defect_ = absl::DeadlineExceededError("the coordinator does not come to rest");
}

bool SeededRun::Seeded() { return coordinator_->GetStatus(0).parameters > 0; }

uint64_t SeededRun::Heads() {
  uint64_t sum = 1;
  for (const FragmentStatusView& fragment : coordinator_->GetStatus(0).fragments) {
    sum += fragment.version.value();
  }
  return sum;
}

WorkerLife* SeededRun::AnyTraining() {
  std::vector<WorkerLife*> training;
  for (auto& [name, seat] : seats_) {
    if (seat.life != nullptr && seat.life->trains()) training.push_back(seat.life.get());
  }
  return training.empty() ? nullptr : training[random_.Below(training.size())];
}

void SeededRun::KillWorker() {
  WorkerLife* const life = AnyTraining();
  if (life == nullptr) return;
  Seat& seat = seats_[life->name()];
  const std::string folder = JoinPath(folder_, life->name());
  life->Kill();
  seat.life.reset();  // its files are written in the background
  // What its thread wrote on its way out was not written.
  std::filesystem::remove_all(folder);
  if (std::filesystem::exists(folder + ".killed")) std::filesystem::rename(folder + ".killed", folder);
  seat.away = 1 + static_cast<int>(random_.Below(120));
  ++happened_["kills"];
}

void SeededRun::ExpireLease() {
  const bool somebody_is_away = std::ranges::any_of(seats_, [](auto& seat) { return seat.second.away > 20; });
  if (coordinator_ == nullptr || !somebody_is_away) return;
  for (int half = 0; half < 2; ++half) {
    clock_.Advance(options_.run.round.lease * 3 / 5);
    for (auto& [name, seat] : seats_) {
      if (seat.life != nullptr) seat.life->Beat();
    }
  }
  const MonoTime deadline = SystemClock().Now() + kLongestSettling;
  const auto lost = [](const WorkerView& worker) {
    return worker.state != "active" || worker.lease_remaining_s > 0;
  };
  while (!std::ranges::all_of(coordinator_->ListWorkers(true), lost) && SystemClock().Now() < deadline) {
    std::this_thread::yield();
  }
  Settle();
  ++happened_["expired_leases"];
}

void SeededRun::Drain() {
  WorkerLife* const life = AnyTraining();
  if (coordinator_ == nullptr || life == nullptr) return;
  constexpr WorkerAction kActions[] = {WorkerAction::kDrain, WorkerAction::kRestart, WorkerAction::kResync};
  const WorkerAction action = kActions[random_.Below(std::size(kActions))];
  const auto done = coordinator_->admin().ControlWorker(
      kOperator, {.worker = life->name(), .action = action, .at_once = random_.Below(2) == 0, .reason = ""});
  Settle();
  happened_["commands"] += done.ok() ? 1 : 0;
}

void SeededRun::ChangeCodec() {
  if (coordinator_ == nullptr) return;
  const std::string codecs[] = {"int8", "e3m0", "int4", "fp32"};
  const auto set = coordinator_->admin().SetConfig(
      kOperator, {{"codec.push", codecs[random_.Below(std::size(codecs))]}}, 0, false);
  Settle();
  happened_["settings"] += set.ok() ? 1 : 0;
}

void SeededRun::MaybeFault() {
  const uint64_t roll = random_.Below(4000);
  if (roll < 400) {
    if (WorkerLife* const life = AnyTraining(); life != nullptr) life->Beat();
  } else if (roll < 480) {
    WorkerLife* const life = AnyTraining();
    if (life == nullptr) return;
    constexpr CallFault kFaults[] = {CallFault::kLost, CallFault::kAnswerLost, CallFault::kTwice};
    life->connection().fault = kFaults[random_.Below(std::size(kFaults))];
    ++happened_["call_faults"];
  } else if (roll < 496) {
    KillWorker();
  } else if (roll < 508 && coordinator_ != nullptr) {
    CloseCoordinator(/*crash=*/random_.Below(2) == 0);
    coordinator_away_ = 1 + static_cast<int>(random_.Below(40));
    ++happened_["coordinator_restarts"];
  } else if (roll < 516) {
    ExpireLease();
  } else if (roll < 526) {
    Drain();
  } else if (roll < 532) {
    ChangeCodec();
  } else if (roll < 536 && coordinator_ != nullptr) {
    // The version that comes next is committed and not stored: the next life replays it.
    faults_->store = true;
    crash_in_ = 100;
    ++happened_["replays"];
  }
}

absl::Status SeededRun::Advance() {
  MaybeFault();
  if (crash_in_ > 0 && --crash_in_ == 0 && coordinator_ != nullptr) {
    CloseCoordinator(/*crash=*/true);
    coordinator_away_ = 1;
  }
  if (coordinator_away_ > 0 && --coordinator_away_ == 0) {
    crash_in_ = 0;
    ATOLL_RETURN_IF_ERROR(OpenCoordinator());
  }
  for (auto& [name, seat] : seats_) {
    if (seat.away > 0 && --seat.away == 0) {
      seat.life = std::make_unique<WorkerLife>(&link_, name, JoinPath(folder_, name));
    }
  }
  const std::vector<int> threads = turnstile_.threads();
  if (!threads.empty()) turnstile_.Run(threads[random_.Below(threads.size())]);
  for (auto& [name, seat] : seats_) {
    if (seat.life == nullptr) continue;
    seat.life->Flush();
    if (!seat.life->ended()) continue;
    if (!seat.life->status().ok()) return seat.life->status();
    // It was drained, or the run is finished.
    seat.life.reset();
    seat.left = Finished();
    if (!seat.left) seat.away = 1 + static_cast<int>(random_.Below(50));
  }
  return defect_;
}

bool SeededRun::Finished() {
  return coordinator_ != nullptr && coordinator_->GetStatus(0).state == RunState::kFinished;
}

bool SeededRun::AllLeft() const {
  return std::ranges::all_of(seats_, [](const auto& seat) { return seat.second.left; });
}

absl::Status SeededRun::Run() {
  ATOLL_RETURN_IF_ERROR(BeginRun());
  ATOLL_RETURN_IF_ERROR(OpenCoordinator());
  for (int i = 0; i < kWorkers; ++i) seats_[WorkerName(absl::StrCat("w", i))].away = 1 + 3 * i;
  int turn = 0;
  for (; turn < kMostTurns && !AllLeft(); ++turn) ATOLL_RETURN_IF_ERROR(Advance());
  happened_["turns"] = turn;
  if (AllLeft()) return absl::OkStatus();
  std::string waits;
  if (coordinator_ != nullptr) {
    for (const FragmentStatusView& fragment : coordinator_->GetStatus(0).fragments) {
      absl::StrAppend(&waits, "; version ", fragment.version.value(), ": ", fragment.waiting_for);
    }
  }
  return absl::DeadlineExceededError(absl::StrCat("not finished after ", turn, " turns", waits));
}

absl::Status SeededRun::HashFragment(RunStore& store, const FragmentLayout& layout, Version head,
                                     Trails& trails) {
  std::set<std::tuple<std::string, uint64_t>> once;
  for (Version version(1); version <= head; version = Next(version)) {
    ATOLL_ASSIGN_OR_RETURN(const RoundRecord record, store.ReadRound(layout.id, version));
    for (const ContentHash& hash : {record.parameters, record.state, record.published}) {
      trails.versions.Add(hash);
    }
    trails.rounds.Add(record.config_version);
    trails.rounds.Add(record.committed_tokens);
    trails.rounds.Add(record.weights);
    for (const Contribution& contribution : record.contributions) {
      trails.rounds.Add(std::string(contribution.key.worker));
      trails.rounds.Add(contribution.key.base.value());
      trails.rounds.Add(contribution.payload_crc32c);
      trails.rounds.Add(contribution.tokens);
      trails.rounds.Add(contribution.samples_consumed);
      trails.rounds.Add(contribution.norm);
      if (once.insert({contribution.key.worker, contribution.key.base.value()}).second) continue;
      return absl::InternalError(absl::StrCat(contribution.key.worker, " counted twice on version ",
                                              contribution.key.base.value(), " of fragment ",
                                              layout.id.value()));
    }
  }
  ATOLL_ASSIGN_OR_RETURN(const FragmentTensors tensors, store.ReadVersion(layout, head));
  trails.tensors.Add(tensors.parameters);
  for (const std::vector<float>& state : tensors.state) trails.tensors.Add(state);
  return absl::OkStatus();
}

absl::Status SeededRun::HashWorkers(const std::vector<FragmentLayout>& layouts, Trails& trails) {
  const std::string manifest = ManifestHash(FakeReplica::MakeManifest());
  for (const auto& [name, seat] : seats_) {
    const std::string folder = JoinPath(folder_, name);
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.insert(entry.path().filename());
    }
    for (const std::string& file : files) {
      ATOLL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(JoinPath(folder, file)));
      trails.state_files.Add(file);
      trails.state_files.Add(bytes);
    }
    ATOLL_ASSIGN_OR_RETURN(
        const auto checkpoint,
        WorkerCheckpoint::Open(
            folder, {.run_id = "0123456789abcdef", .worker = name, .manifest_hash = manifest}, Logger()));
    for (const FragmentLayout& layout : layouts) {
      const auto push = checkpoint->LoadPush(layout.id);
      if (push.ok()) trails.residuals.Add(push->residual);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RunTrace> SeededRun::Trace() {
  // Its last version may not be stored: the next life replays it.
  CloseCoordinator(/*crash=*/false);
  ATOLL_RETURN_IF_ERROR(OpenCoordinator());
  CloseCoordinator(/*crash=*/false);
  ATOLL_ASSIGN_OR_RETURN(const auto store, OpenMemoryStore(checkpoint_));
  ATOLL_ASSIGN_OR_RETURN(const auto recovery, store->Recover());
  ATOLL_ASSIGN_OR_RETURN(
      const std::vector<FragmentLayout> layouts,
      PlanFragments(FakeReplica::MakeManifest(), options_.fragments, options_.run.sync.pattern));
  RunTrace trace;
  Trails trails;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Version head = recovery->fragments[i].head;
    trace.heads += head.value();
    ATOLL_RETURN_IF_ERROR(HashFragment(*store, layouts[i], head, trails));
  }
  ATOLL_RETURN_IF_ERROR(HashWorkers(layouts, trails));
  trace.versions = trails.versions.Digest();
  trace.rounds = trails.rounds.Digest();
  trace.tensors = trails.tensors.Digest();
  trace.residuals = trails.residuals.Digest();
  trace.state_files = trails.state_files.Digest();
  trace.faults = happened_;
  return trace;
}

}  // namespace atl
