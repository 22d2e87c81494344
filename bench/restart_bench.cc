// How long a coordinator takes from exec to serving, beside reading the same bytes once, both with a cold
// page cache.
//
//   atoll-restart-bench COORDINATOR [DIR] [ROUNDS]      defaults: a new folder in the current one, 3
//
// The run: a model of 1 GB (float32) with momentum, two bf16 contributions that were committed and not
// stored, so that a round is replayed. Needs root to drop the page cache; says so when it cannot. Medians.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/bench_main.h"
#include "common/crc32c.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"
#include "server/rounds/merge_engine.h"
#include "server/rounds/recover_fragments.h"
#include "storage/rocksdb/rocksdb_store.h"

extern char** environ;

namespace atl {
namespace {

constexpr char kYaml[] =
    "run: {name: restart, workers: 2, rounds: 1000}\n"
    "model: {gpt: {layers: 20, heads: 8, width: 1024, context: 64, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: local}\n"
    "inner: {steps: 2, learning_rate: 1e-3, batch: 1}\n"
    "codec: {push: bf16, pull_delta: none}\n"
    "checkpoint: {shards: 4}\n";

using Seconds64 = std::chrono::duration<double>;

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class RestartBench {
 public:
  RestartBench(std::string coordinator, std::string dir)
      : coordinator_(std::move(coordinator)), dir_(std::move(dir)) {}

  absl::Status Run(int rounds) {
    ATOLL_RETURN_IF_ERROR(MakeRun());
    std::vector<double> raw;
    std::vector<double> restart;
    for (int i = 0; i < rounds; ++i) {
      ATOLL_RETURN_IF_ERROR(DropCaches());
      ATOLL_ASSIGN_OR_RETURN(const double read, ReadEverything());
      raw.push_back(read);
      ATOLL_RETURN_IF_ERROR(DropCaches());
      ATOLL_ASSIGN_OR_RETURN(const double served, StartAndKill());
      restart.push_back(served);
      std::printf("read %.2f s, restart %.2f s\n", read, served);
    }
    std::printf(
        "\n%.2f GB on disk, %s page cache: read once %.2f s, exec to serving %.2f s (one round replayed), "
        "ratio %.2f\n",
        static_cast<double>(bytes_read_) * 1e-9, cold_ ? "cold" : "WARM", Median(raw), Median(restart),
        Median(restart) / Median(raw));
    return absl::OkStatus();
  }

 private:
  absl::Status MakeRun() {
    ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config, ParseRunConfig(kYaml, "restart bench"));
    ATOLL_ASSIGN_OR_RETURN(const RunOptions run, ToRunOptions(config));
    const Manifest manifest = ManifestOf(run.model).value();
    ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(manifest, 1));
    const FragmentLayout& layout = layouts.front();
    ATOLL_ASSIGN_OR_RETURN(const auto store, OpenRocksDbStore({.data_dir = data_dir()}));
    ATOLL_RETURN_IF_ERROR(store->CreateRun(
        {.run_id = "0123456789abcdef",
         .name = run.name,
         .epoch = Epoch(1),
         .created_unix_ns = 0,
         .shards = run.shards,
         .chunk_elements = uint64_t{1} << 18},
        {.version = 1, .recorded_unix_ns = 0, .author = "start", .bytes = config.SerializeAsString()}));
    FragmentState state{
        .epoch = Epoch(1), .layout = layout, .version = Version(0), .theta = nullptr, .state = {}};
    TensorBuffer theta = TensorBuffer::Zeros(layout.elements);
    SplitMixGenerator random(1);
    for (const TensorSlot& slot : layout.slots) {
      for (uint64_t i = 0; i < slot.elements; ++i) {
        theta.values()[slot.offset + i] = static_cast<float>(random.Uniform() - 0.5);
      }
    }
    state.theta = std::make_shared<TensorBuffer>(std::move(theta));
    state.state.push_back(TensorBuffer::Zeros(layout.elements));
    ATOLL_RETURN_IF_ERROR(store->Seed(manifest, layouts, {state.view()}));
    return CommitARound(*store, run, state);
  }

  static absl::StatusOr<Contribution> Push(RunStore& store, const FragmentState& state,
                                           const WorkerName& worker) {
    const Codec& codec = CodecFor(CodecKind::kBf16);
    std::vector<std::byte> payload(codec.EncodedSize(state.layout.elements));
    codec.Encode(state.theta->values(), payload);
    Contribution c;
    c.key = {
        .epoch = Epoch(1), .fragment = state.layout.id, .base = Version(0), .worker = worker, .sequence = 0};
    c.codec = CodecKind::kBf16;
    c.payload_bytes = payload.size();
    c.payload_crc32c = Crc32c(payload);
    c.tokens = 1;
    c.steps = 1;
    ATOLL_ASSIGN_OR_RETURN(const auto upload, store.StartUpload(c.key, payload.size()));
    ATOLL_RETURN_IF_ERROR(upload->Append(payload));
    ATOLL_RETURN_IF_ERROR(upload->Accept(c));
    return c;
  }

  static absl::Status CommitARound(RunStore& store, const RunOptions& run, FragmentState& state) {
    RoundRecord record;
    record.epoch = Epoch(1);
    record.version = Version(1);
    record.outer_steps = 1;
    record.config_version = 1;
    record.outer = run.outer;
    record.merge = run.merge;
    for (const char* worker : {"a", "b"}) {
      ATOLL_ASSIGN_OR_RETURN(Contribution c, Push(store, state, worker));
      record.contributions.push_back(std::move(c));
      record.weights.push_back(0.5F);
    }
    MergeEngine engine(std::thread::hardware_concurrency(), run.pull_codec, run.pull_delta);
    ATOLL_ASSIGN_OR_RETURN(const MergeInputs mapped, MapInputs(store, record.contributions, record.weights));
    ATOLL_ASSIGN_OR_RETURN(const ComputedVersion computed,
                           engine.Step(mapped.inputs, record.merge, record.outer, state));
    record.parameters = computed.hashes.parameters;
    record.state = computed.hashes.state;
    record.published = computed.hashes.published;
    return store.CommitRound(record, {});
  }

  absl::Status DropCaches() {
    ::sync();
    std::ofstream drop("/proc/sys/vm/drop_caches");
    drop << "3\n";
    drop.flush();
    if (!drop.good() && cold_) {
      cold_ = false;
      std::printf("the page cache cannot be dropped here (no root): everything below is warm\n");
    }
    return absl::OkStatus();
  }

  /// One thread a file, as many as there are shards at a time, which is the faster way here.
  absl::StatusOr<double> ReadEverything() {
    std::vector<std::string> files;
    for (const char* folder : {"/shards", "/contributions", "/meta"}) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(data_dir() + folder)) {
        if (entry.is_regular_file()) files.push_back(entry.path().string());
      }
    }
    bytes_read_ = 0;
    std::atomic<size_t> next = 0;
    std::atomic<uint64_t> total = 0;
    const auto started = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        std::vector<std::byte> buffer(size_t{1} << 20);
        for (size_t at = next++; at < files.size(); at = next++) {
          const auto file = DurableFile::Open(files[at], OpenMode::kReadOnly);
          const uint64_t size = file.ok() ? file->Size().value_or(0) : 0;
          for (uint64_t done = 0; done < size;) {
            const auto piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), size - done));
            if (!file->ReadAt(done, piece).ok()) break;
            done += piece.size();
          }
          total += size;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    bytes_read_ = total;
    return Seconds64(std::chrono::steady_clock::now() - started).count();
  }

  /// Dies before the replayed version is marked as stored, so that the next start replays it again.
  absl::StatusOr<double> StartAndKill() const {
    const std::string ports = dir_ + "/ports.json";
    ATOLL_RETURN_IF_ERROR(RemoveFile(ports));
    ::setenv("ATOLL_FAULT", "stored.ready:1", 1);
    std::vector<std::string> arguments = {
        coordinator_,  "--data-dir",       data_dir(), "--listen",    "127.0.0.1:0", "--admin-listen",
        "127.0.0.1:0", "--metrics-listen", "",         "--port-file", ports,         "--log-level",
        "warning"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    const auto started = std::chrono::steady_clock::now();
    if (::posix_spawn(&pid, coordinator_.c_str(), nullptr, nullptr, argv.data(), environ) != 0) {
      return absl::NotFoundError(absl::StrCat("cannot start ", coordinator_));
    }
    while (!FileExists(ports) && ::waitpid(pid, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const double seconds = Seconds64(std::chrono::steady_clock::now() - started).count();
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (!FileExists(ports)) return absl::InternalError("the coordinator ended before it served");
    return seconds;
  }

  std::string data_dir() const { return dir_ + "/run"; }

  const std::string coordinator_;
  const std::string dir_;
  bool cold_ = true;
  uint64_t bytes_read_ = 0;
};

absl::Status Main(int argc, char** argv) {
  if (argc < 2) return absl::InvalidArgumentError("usage: atoll-restart-bench COORDINATOR [DIR] [ROUNDS]");
  const std::string dir = argc > 2 ? argv[2] : "";
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;
  if (rounds < 1) return absl::InvalidArgumentError("ROUNDS must be at least 1");
  return InNewFolder(dir, "restart_bench",
                     [&](const std::string& folder) { return RestartBench(argv[1], folder).Run(rounds); });
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::ExitCodeOfBench("atoll-restart-bench", atl::Main(argc, argv)); }
