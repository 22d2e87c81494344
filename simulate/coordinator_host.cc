#include "simulate/coordinator_host.h"

#include <utility>

#include "common/status.h"

namespace atl {
namespace {

constexpr Duration kReaperLook = Seconds(0.01);

}  // namespace

CoordinatorHost::CoordinatorHost(CoordinatorOptions options, const Clock* clock, RunChecker* checker,
                                 uint64_t seed)
    : options_(std::move(options)), clock_(clock), checker_(checker), random_(seed) {}

CoordinatorHost::~CoordinatorHost() {
  if (life_ != nullptr) Stop();
  Reap();
}

absl::Status CoordinatorHost::CreateRun() {
  ATOLL_ASSIGN_OR_RETURN(const auto store, OpenMemoryStore(disk_));
  // An identity that a coordinator would draw at random.
  const RunIdentity identity{.run_id = "0123456789abcdef",
                             .name = options_.run.name,
                             .epoch = Epoch(42),
                             .shards = options_.run.shards,
                             .chunk_elements = options_.chunk_elements};
  return store->CreateRun(identity, {.version = 1, .author = "start", .bytes = options_.config_bytes});
}

absl::Status CoordinatorHost::Start() {
  auto life = std::make_shared<Life>();
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, OpenMemoryStore(disk_));
  life->store = std::make_shared<SimulatedStoreState>(random_(), checker_);
  CoordinatorDeps deps;
  deps.store = std::make_unique<SimulatedStore>(std::move(store), life->store);
  deps.clock = clock_;
  deps.config_codec = &codec_;
  deps.observer = &life->budget;
  life->began = SteadyNow();
  ATOLL_ASSIGN_OR_RETURN(life->coordinator, CreateCoordinator(options_, std::move(deps)));
  life_ = std::move(life);
  return absl::OkStatus();
}

void CoordinatorHost::Kill() { Bury(/*power=*/false); }
void CoordinatorHost::CutPower() { Bury(/*power=*/true); }

void CoordinatorHost::Bury(bool power) {
  if (life_ == nullptr) return;
  // Nothing that its threads write from here on is on the disk that the next life opens.
  disk_ = CloneMemoryDisk(*disk_);
  if (power) life_->store->LoseUnsynced(*disk_);
  life_->dead = life_->store->dead = true;
  reapers_.emplace_back([life = std::exchange(life_, nullptr)] {
    life->coordinator->Shutdown();
    while (life->calls > 0) SleepThisThread(kReaperLook);
    life->coordinator.reset();
  });
}

void CoordinatorHost::Stop() {
  const LifePtr life = std::exchange(life_, nullptr);
  if (life == nullptr) return;
  life->coordinator->Shutdown();
  while (life->calls > 0) SleepThisThread(kReaperLook);
  life->coordinator.reset();
  life->dead = true;
}

void CoordinatorHost::Reap() {
  for (Thread& reaper : reapers_) reaper.Join();
  reapers_.clear();
}

}  // namespace atl
