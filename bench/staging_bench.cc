// What a durable acknowledgement costs an upload: contributions pushed over gRPC on loopback to a coordinator
// in this process, once with its data directory in memory (/dev/shm: the plain upload, every check, no disk)
// and once on the disk, beside a raw write + fsync of the same bytes.
//
//   atoll-staging-bench [DIR] [ROUNDS] [LAYERS]      defaults: a new folder in the current one, 5, 5
//
// A float32 contribution of 48 MiB a layer and one MiB, one worker, medians.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench_main.h"
#include "client/rpc/channel.h"
#include "client/rpc/grpc_connection.h"
#include "common/crc32c.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "protos/config/run_config.h"
#include "server/create_coordinator.h"
#include "server/rpc/server.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atl {
namespace {

constexpr char kYaml[] =
    "run: {name: staging, workers: 1, rounds: 1000}\n"
    "model: {gpt: {layers: %d, heads: 8, width: 1024, context: 64, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, mode: local}\n"
    "inner: {steps: 1, learning_rate: 1e-3, batch: 1}\n"
    "codec: {push: fp32, pull_delta: none}\n"
    "evaluation: {every: 1000000}\n"
    "checkpoint: {keep_versions: 1, shards: 4}\n";

template <typename Work>
absl::StatusOr<double> Timed(const Work& work) {
  const auto started = std::chrono::steady_clock::now();
  ATOLL_RETURN_IF_ERROR(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A coordinator on this store, listening, and one worker connected to it.
class Island {
 public:
  static absl::StatusOr<std::unique_ptr<Island>> Start(std::unique_ptr<RunStore> store, int layers) {
    std::unique_ptr<Island> island(new Island);
    ATOLL_ASSIGN_OR_RETURN(const v1::RunConfig config,
                           ParseRunConfig(absl::StrFormat(kYaml, layers), "staging bench"));
    CoordinatorOptions options;
    ATOLL_ASSIGN_OR_RETURN(options.run, ToRunOptions(config));
    options.config_bytes = config.SerializeAsString();
    const Manifest manifest = ManifestOf(options.run.model).value();
    ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(manifest, 1));
    island->elements_ = layouts.front().elements;
    CoordinatorDeps deps;
    deps.store = std::move(store);
    deps.clock = &island->clock_;
    ATOLL_ASSIGN_OR_RETURN(island->coordinator_, CreateCoordinator(std::move(options), std::move(deps)));
    RpcServerOptions rpc;
    rpc.data_address = rpc.admin_address = "127.0.0.1:0";
    ATOLL_ASSIGN_OR_RETURN(island->server_,
                           RpcServer::Start(rpc, island->coordinator_.get(), &island->clock_, Logger()));
    ATOLL_RETURN_IF_ERROR(island->Connect(manifest));
    return island;
  }
  ~Island() {
    connection_.reset();
    coordinator_->Shutdown();
    server_->Shutdown();
  }

  uint64_t bytes() const { return elements_ * sizeof(float); }

  /// Pulls the head, pushes a contribution to it; the time of the push alone.
  absl::StatusOr<double> Round(std::span<const std::byte> payload, uint32_t crc) {
    PullRequest request{.call = {.fragment = FragmentId(0), .after = base_, .wait = Seconds(60)}};
    request.elements = elements_;
    std::vector<std::byte> pulled(payload.size());
    ATOLL_ASSIGN_OR_RETURN(const PulledVersion version, connection_->Pull(member_, request, pulled));
    if (version.outcome != PullOutcome::kParameters)
      return absl::UnavailableError("no next version: " + version.waiting_for);
    base_ = version.version;
    PushHeader header{.key = {.fragment = FragmentId(0), .base = version.version},
                      .payload_bytes = payload.size(),
                      .payload_crc32c = crc};
    header.tokens = header.steps = 1;
    return Timed([&] { return connection_->Push(member_, header, payload, 0).status(); });
  }

 private:
  absl::Status Connect(const Manifest& manifest) {
    const std::string address = server_->data_address();
    connection_ = std::make_unique<GrpcConnection>(GrpcConnectionOptions{.address = address},
                                                   MakeChannel({.address = address}), &clock_);
    JoinCall parameters{.worker = "w0", .secret = "0123456789abcdef"};
    parameters.manifest_hash = ManifestHash(manifest);
    ATOLL_ASSIGN_OR_RETURN(const JoinedRun joined, connection_->Join(parameters));
    member_ = joined.member;
    const std::vector<float> zeros(elements_, 0.0F);
    const SeedFragment seed{.id = FragmentId(0), .values = zeros};
    return connection_->SeedParameters(member_, manifest, std::span(&seed, 1));
  }

  const SystemClock clock_{};
  uint64_t elements_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<GrpcConnection> connection_;
  MemberRef member_;
  std::optional<Version> base_;
};

absl::StatusOr<double> RawWrite(const std::string& dir, std::span<const std::byte> payload) {
  const std::string path = dir + "/raw";
  ATOLL_RETURN_IF_ERROR(RemoveFile(path));
  return Timed([&]() -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kCreateNew));
    ATOLL_RETURN_IF_ERROR(file.WriteAt(0, payload));
    ATOLL_RETURN_IF_ERROR(file.Sync());
    return FsyncDir(dir);
  });
}

absl::Status Measure(const std::string& dir, int rounds, int layers) {
  const std::string memory_dir = absl::StrCat("/dev/shm/atoll-staging-bench.", ::getpid());
  const absl::Cleanup remove_memory = [&] { RemoveAll(memory_dir).IgnoreError(); };
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> memory, OpenRocksDbStore({.data_dir = memory_dir}));
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> checkpoint, OpenRocksDbStore({.data_dir = dir + "/run"}));
  ATOLL_ASSIGN_OR_RETURN(const auto plain, Island::Start(std::move(memory), layers));
  ATOLL_ASSIGN_OR_RETURN(const auto durable, Island::Start(std::move(checkpoint), layers));
  const std::vector<float> values(plain->bytes() / sizeof(float), 1e-6F);
  const auto payload = std::as_bytes(std::span(values));
  const uint32_t crc = Crc32c(payload);
  std::vector<double> uploads;
  std::vector<double> durables;
  std::vector<double> raws;
  for (int i = 0; i < rounds; ++i) {
    ATOLL_ASSIGN_OR_RETURN(uploads.emplace_back(), plain->Round(payload, crc));
    ATOLL_ASSIGN_OR_RETURN(durables.emplace_back(), durable->Round(payload, crc));
    ATOLL_ASSIGN_OR_RETURN(raws.emplace_back(), RawWrite(dir, payload));
    // The version before is written behind its publication: not during the next measurement.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  const double larger = std::max(Median(uploads), Median(raws));
  std::printf(
      "%llu MiB: plain upload %.3f s, raw write + fsync %.3f s, durable upload %.3f s = %.2f of the larger\n",
      static_cast<unsigned long long>(payload.size() >> 20), Median(uploads), Median(raws), Median(durables),
      Median(durables) / larger);
  return absl::OkStatus();
}

absl::Status Main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : "";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const int layers = argc > 3 ? std::atoi(argv[3]) : 5;
  if (rounds < 1 || layers < 1) {
    return absl::InvalidArgumentError("usage: atoll-staging-bench [DIR] [ROUNDS >= 1] [LAYERS >= 1]");
  }
  return InNewFolder(dir, "staging_bench",
                     [&](const std::string& folder) { return Measure(folder, rounds, layers); });
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::ExitCodeOfBench("atoll-staging-bench", atl::Main(argc, argv)); }
