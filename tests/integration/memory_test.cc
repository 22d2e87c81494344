// The coordinator's memory against the formula of core/memory_plan.h: a model of 1 GB (float32), 8 workers
// that push float32 contributions at the same time, a real atoll-coordinator in a memory cgroup of four times
// the model's bytes where this machine lets us make one. docs/reference/benchmarks.md has the command and the
// figures.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "core/fragment_plan.h"
#include "core/memory_plan.h"
#include "core/model_shape.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "protos/config/run_config.h"
#include "tests/common/test_dir.h"
#include "tests/integration/process.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr uint32_t kWorkers = 8;
constexpr uint32_t kRounds = 2;
constexpr uint32_t kSteps = 2;
constexpr char kConfig[] = R"(
run: {name: memory, workers: 8, rounds: 2}
model: {gpt: {layers: 20, heads: 8, width: 1024, context: 64, vocabulary: 256}}
data: {tokenizer: bytes, mode: local}
inner: {steps: 2, learning_rate: 1e-3, batch: 1}
round: {deadline_s: 3600, lease_s: 3600}
codec: {push: fp32, pull_delta: none}
evaluation: {every: 0}
checkpoint: {keep_versions: 1, shards: 2}
limits: {contribution_budget_mib: 16384}
)";

/// A memory cgroup of this test's own; absent where none can be made (no root, no controller).
class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t limit) {
    const std::string name = absl::StrFormat("atoll-memory-test-%d", ::getpid());
    for (const auto& [root, limit_file, peak_file] :
         {std::tuple("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
          std::tuple("/sys/fs/cgroup/", "memory.max", "memory.peak")}) {
      const std::string path = root + name;
      if (::mkdir(path.c_str(), 0755) != 0) continue;
      std::ofstream(path + "/" + limit_file) << limit;
      std::ifstream in(path + "/" + limit_file);
      uint64_t taken = 0;
      if (in >> taken && taken <= limit) {
        path_ = path;
        peak_file_ = peak_file;
        return;
      }
      ::rmdir(path.c_str());
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  bool exists() const { return !path_.empty(); }
  void Add(pid_t pid) const { std::ofstream(path_ + "/cgroup.procs") << pid; }
  uint64_t peak() const {
    uint64_t bytes = 0;
    std::ifstream(path_ + "/" + peak_file_) >> bytes;
    return bytes;
  }

 private:
  std::string path_;
  std::string peak_file_;
};

/// Bytes of a line "VmHWM:   123 kB" of /proc/PID/status; 0 when the process is gone.
uint64_t StatusBytes(pid_t pid, const std::string& field) {
  std::ifstream in(absl::StrFormat("/proc/%d/status", pid));
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field + ":", 0) != 0) continue;
    uint64_t kib = 0;
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    return parts.size() > 1 && absl::SimpleAtoi(parts[1], &kib) ? kib << 10 : 0;
  }
  return 0;
}

/// The largest anonymous memory of a process, looked at every 10 ms: what the kernel cannot take back. (VmHWM
/// also counts pages of mapped contributions, which it can.)
class Sampler {
 public:
  explicit Sampler(pid_t pid)
      : thread_([this, pid] {
          while (!stop_) {
            anonymous_ = std::max(anonymous_.load(), StatusBytes(pid, "RssAnon"));
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~Sampler() {
    stop_ = true;
    thread_.join();
  }
  uint64_t anonymous() const { return anonymous_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> anonymous_ = 0;
  std::thread thread_;
};

/// What the workers share: the threads stand for processes, each of which would have its own gigabytes.
struct World {
  RunOptions run;
  Manifest manifest;
  uint64_t elements = 0;
  std::string address;
  std::vector<std::byte> contribution;
  uint32_t crc = 0;
  std::mutex pulling;  // guards `pulled`
  std::vector<std::byte> pulled;
  std::barrier<> together{kWorkers};
  SystemClock clock;
};

absl::Status Seed(World& world, GrpcConnection& connection, const MemberRef& member) {
  const std::vector<float> values(world.elements, 0.01F);
  const SeedFragment fragment{.id = FragmentId(0), .values = values};
  return connection.SeedParameters(member, world.manifest, std::span(&fragment, 1));
}

absl::StatusOr<PulledVersion> PullAfter(World& world, GrpcConnection& connection, const MemberRef& member,
                                        std::optional<Version> after) {
  const PullRequest request{.call = {.fragment = FragmentId(0), .after = after, .wait = Seconds(0.2)},
                            .elements = world.elements};
  while (!::testing::Test::HasFailure()) {
    const std::lock_guard<std::mutex> lock(world.pulling);
    auto pulled = connection.Pull(member, request, world.pulled);
    if (!pulled.ok() || pulled->outcome != PullOutcome::kNotYet) return pulled;
  }
  return absl::AbortedError("another worker failed");
}

void Work(World& world, uint32_t number) {
  GrpcConnectionOptions options{.address = world.address};
  options.push_answer = Seconds(600);
  // Eight gigabytes are written and synced at once, on whatever disk this machine has.
  options.stall = Seconds(600);
  GrpcConnection connection(options, MakeChannel({.address = world.address}), &world.clock);
  JoinCall join{.worker = absl::StrFormat("w%d", number), .secret = std::string(32, 's')};
  join.manifest_hash = ManifestHash(world.manifest);
  join.dataset = DatasetSummary{"bytes", 256, 100000, std::string(64, 'a')};
  const auto joined = connection.Join(join);
  const bool seeds = joined.ok() && joined->seed_granted;
  if (seeds) {
    EXPECT_TRUE(Seed(world, connection, joined->member).ok());
  }
  EXPECT_TRUE(joined.ok()) << joined.status();
  world.together.arrive_and_wait();
  std::optional<Version> base;
  for (uint32_t round = 0; round < kRounds && joined.ok(); ++round) {
    const auto pulled = PullAfter(world, connection, joined->member, base);
    if (!pulled.ok() || pulled->outcome != PullOutcome::kParameters) {
      ADD_FAILURE() << "pull of worker " << number << ": " << pulled.status();
      break;
    }
    base = pulled->version;
    world.together.arrive_and_wait();  // all push at the same time
    const PushHeader header{.key = {.fragment = FragmentId(0), .base = *base},
                            .payload_bytes = world.contribution.size(),
                            .payload_crc32c = world.crc,
                            .tokens = kSteps * world.run.tokens_per_step(),
                            .steps = kSteps};
    const auto pushed = connection.Push(joined->member, header, world.contribution, 0);
    if (!pushed.ok()) {
      ADD_FAILURE() << "push of worker " << number << ": " << pushed.status();
      break;
    }
  }
  // Until the last version is there; but nobody waits for one that cannot come.
  if (!::testing::Test::HasFailure()) (void)PullAfter(world, connection, joined->member, base);
  world.together.arrive_and_drop();
}

TEST(CoordinatorMemory, StaysBelowTheFormulaAndFourTimesTheModel) {
  TestDir dir;
  World world;
  world.run = ToRunOptions(ParseRunConfig(kConfig, "memory").value()).value();
  world.manifest = ManifestOf(world.run.model).value();
  world.elements = PlanFragments(world.manifest, 1).value().front().elements;
  const uint64_t model = world.elements * sizeof(float);
  ASSERT_GE(model, 1'000'000'000u);
  const CoordinatorMemory plan = PlanCoordinatorMemory(MemoryPlanInputOf(world.run, world.elements));
  if (FreeBytes(dir.path()).value() < model * 3 * kWorkers) GTEST_SKIP() << "needs 25 GB of disk";

  ASSERT_TRUE(WriteFileAtomically(dir.File("run.yaml"), kConfig).ok());
  const auto coordinator =
      Process::Start({(ATOLL_BIN_DIR "/atoll-coordinator"), "--config", dir.File("run.yaml"), "--data-dir",
                      dir.File("data"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
                      "--metrics-listen", "", "--port-file", dir.File("ports")},
                     dir.File("log"));
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  const MemoryGroup group(4 * model);
  if (group.exists()) group.Add((*coordinator)->pid());
  for (int i = 0; i < 600 && !FileExists(dir.File("ports")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  world.address = nlohmann::json::parse(ReadFile(dir.File("ports")).value())["data"].get<std::string>();
  world.contribution.resize(model);
  std::ranges::fill(std::span(reinterpret_cast<float*>(world.contribution.data()), world.elements), 1e-4F);
  world.crc = Crc32c(world.contribution);
  world.pulled.resize(model);
  Sampler sampler((*coordinator)->pid());
  {
    std::vector<std::jthread> workers;
    for (uint32_t i = 0; i < kWorkers; ++i) workers.emplace_back([&world, i] { Work(world, i); });
  }
  const auto times = [&](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(model); };
  std::printf(
      "model %.3f GB; anonymous peak %.2f x; resident with mapped files %.2f x; cgroup of 4 x: %s; "
      "formula: usual %.2f x, peak %.2f x\n",
      static_cast<double>(model) / 1e9, times(sampler.anonymous()),
      times(StatusBytes((*coordinator)->pid(), "VmHWM")),
      group.exists() ? absl::StrFormat("peak %.2f x", times(group.peak())).c_str() : "none",
      times(plan.usual()), times(plan.peak()));
  EXPECT_GT(sampler.anonymous(), 2 * model) << "the model was not even there";
  EXPECT_LE(sampler.anonymous(), plan.peak());
  EXPECT_LE(sampler.anonymous(), 4 * model);
  (*coordinator)->Signal(SIGTERM);
  EXPECT_EQ((*coordinator)->Wait(Seconds(120)), 0) << "it was ended by the kernel?\n"
                                                   << ReadFile(dir.File("log")).value_or("");
}

}  // namespace
}  // namespace atl
