// How long a version takes to become durable, beside a plain write + fsync of the same bytes in the same run.
//
//   atoll-commit-bench [DIR] [MIB] [ROUNDS]      defaults: a new folder in the current one, 512, 5
//
// MIB counts what a version stores: parameters and one momentum vector, half each. Times are medians; the
// ratio is to the faster of the two raw writes. Write amplification is what the kernel was handed
// (/proc/self/io) over MIB. The merge is that of one bf16 contribution; with the commit of its record it is
// all that lies between the last contribution and the published version. Disk is the most that the run's
// files took while a version was being stored, over the versions kept and the contributions that are live.

#include <unistd.h>
#include <ctime>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/bench_main.h"
#include "common/clock.h"
#include "common/crc32c.h"
#include "common/durable_file.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "core/codec.h"
#include "server/rounds/merge_engine.h"
#include "server/rounds/recover_fragments.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atl {
namespace {

constexpr uint32_t kShards = 4;
constexpr uint64_t kChunkElements = uint64_t{1} << 20;  // 4 MiB a value
constexpr uint64_t kPayloadPiece = uint64_t{1} << 20;

uint64_t BytesHandedToTheKernel() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    uint64_t value = 0;
    io >> value;
    if (name == "write_bytes:") return value;
  }
  return 0;
}

double CpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;
  double written_bytes = 0;
};

class CommitBench {
 public:
  CommitBench(std::string dir, uint64_t mib) : dir_(std::move(dir)), bytes_(mib << 20) {
    const auto rows = static_cast<int64_t>(bytes_ / 2 / sizeof(float) / 1024);
    manifest_.tensors = {{.name = "weight", .shape = {rows, 1024}, .embedding = false}};
  }

  absl::Status Run(int rounds) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<FragmentLayout> layouts, PlanFragments(manifest_, 1));
    layout_ = layouts.front();
    Fill();
    ATOLL_RETURN_IF_ERROR(Prepare());
    for (int round = 0; round < rounds; ++round) ATOLL_RETURN_IF_ERROR(OneRound(Version(round + 1)));
    store_.reset();
    ATOLL_RETURN_IF_ERROR(Time("open after it", [this] { return Open(); }));
    ATOLL_RETURN_IF_ERROR(
        Time("read a version back", [&] { return store_->ReadVersion(layout_, Version(rounds)).status(); }));
    Report();
    return absl::OkStatus();
  }

 private:
  void Fill() {
    parameters_.resize(layout_.elements);
    momentum_.resize(layout_.elements);
    SplitMixGenerator random(1);
    for (uint64_t i = 0; i < layout_.elements; ++i) {
      parameters_[i] = static_cast<float>(random.Uniform());
      momentum_[i] = static_cast<float>(random.Uniform());
    }
    const Codec& codec = CodecFor(CodecKind::kBf16);
    payload_.resize(codec.EncodedSize(layout_.elements));
    codec.Encode(parameters_, payload_);
  }

  FragmentTensorsView View() const { return {.parameters = parameters_, .state = {momentum_}}; }

  absl::Status Open() {
    ATOLL_ASSIGN_OR_RETURN(store_, OpenRocksDbStore({.data_dir = dir_ + "/run"}));
    return store_->Recover().status();
  }

  absl::Status Prepare() {
    ATOLL_RETURN_IF_ERROR(Open());
    const RunIdentity identity{.run_id = "bench",
                               .name = "bench",
                               .epoch = Epoch(1),
                               .created_unix_ns = 0,
                               .shards = kShards,
                               .chunk_elements = kChunkElements};
    state_ = {.epoch = Epoch(1), .layout = layout_, .version = Version(0), .theta = nullptr, .state = {}};
    state_.theta = std::make_shared<TensorBuffer>(TensorBuffer::CopyOf(parameters_));
    state_.state.push_back(TensorBuffer::CopyOf(momentum_));
    ATOLL_RETURN_IF_ERROR(store_->CreateRun(identity, {.version = 1, .recorded_unix_ns = 0, .bytes = ""}));
    return Time("seed", [this] { return store_->Seed(manifest_, {layout_}, {View()}); });
  }

  absl::Status OneRound(Version version) {
    ATOLL_RETURN_IF_ERROR(Time("raw, one file", [this] { return RawWrite(1); }));
    ATOLL_RETURN_IF_ERROR(Time("raw, one file a shard", [this] { return RawWrite(kShards); }));
    const Contribution contribution = DescribePayload(Version(version.value() - 1));
    ATOLL_RETURN_IF_ERROR(Time("raw, MIB/4 in one file", [this] { return RawPayload(); }));
    ATOLL_RETURN_IF_ERROR(Time("push of MIB/4", [&] { return Push(contribution); }));
    RoundRecord record;
    record.epoch = Epoch(1);
    record.version = version;
    record.outer_steps = state_.outer_steps + 1;
    record.config_version = 1;
    record.contributions = {contribution};
    record.weights = {1};
    ATOLL_RETURN_IF_ERROR(Time("merge of the round", [&] { return Merge(record); }));
    ATOLL_RETURN_IF_ERROR(Time("commit of the round", [&] { return store_->CommitRound(record, {}); }));
    const DiskWatch watch(store_.get(), &most_disk_bytes_);
    return Time("store of the version", [&] { return store_->StoreVersion(layout_, version, View(), 1); });
  }

  /// As the coordinator does it, on as many threads as there are processors; the bits go nowhere.
  absl::Status Merge(const RoundRecord& record) {
    ATOLL_ASSIGN_OR_RETURN(const MergeInputs mapped,
                           MapInputs(*store_, record.contributions, record.weights));
    return engine_.Step(mapped.inputs, record.merge, record.outer, state_).status();
  }

  absl::Status RawPayload() const {
    const std::string path = dir_ + "/raw-payload";
    ATOLL_RETURN_IF_ERROR(RemoveFile(path));
    ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kCreateNew));
    ATOLL_RETURN_IF_ERROR(file.WriteAt(0, Payload()));
    ATOLL_RETURN_IF_ERROR(file.Sync());
    return FsyncDir(dir_);
  }

  /// The most that the run's files take while it lives.
  class DiskWatch {
   public:
    DiskWatch(RunStore* store, uint64_t* most)
        : thread_([this, store, most] {
            while (!done_) {
              *most = std::max(*most, store->DiskBytes().value_or(0));
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
          }) {}
    ~DiskWatch() {
      done_ = true;
      thread_.join();
    }

   private:
    std::atomic<bool> done_ = false;
    std::thread thread_;
  };

  std::span<const std::byte> Payload() const { return payload_; }

  Contribution DescribePayload(Version base) const {
    Contribution contribution;
    contribution.key = {
        .epoch = Epoch(1), .fragment = layout_.id, .base = base, .worker = "bench", .sequence = 0};
    contribution.codec = CodecKind::kBf16;
    contribution.payload_bytes = Payload().size();
    contribution.payload_crc32c = Crc32c(Payload());
    return contribution;
  }

  absl::Status Push(const Contribution& contribution) {
    ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Upload> upload,
                           store_->StartUpload(contribution.key, contribution.payload_bytes));
    for (auto rest = Payload(); !rest.empty();) {
      const size_t size = std::min<size_t>(rest.size(), kPayloadPiece);
      ATOLL_RETURN_IF_ERROR(upload->Append(rest.first(size)));
      rest = rest.subspan(size);
    }
    return upload->Accept(contribution);
  }

  /// The same bytes into `files` files, one thread each, every file and the folder synced.
  absl::Status RawWrite(uint32_t files) {
    std::vector<absl::Status> results(files);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < files; ++i) {
      threads.emplace_back([&, i] { results[i] = RawFile(absl::StrCat(dir_, "/raw-", i), i, files); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& result : results) ATOLL_RETURN_IF_ERROR(result);
    return FsyncDir(dir_);
  }

  absl::Status RawFile(const std::string& path, uint32_t part, uint32_t parts) const {
    ATOLL_RETURN_IF_ERROR(RemoveFile(path));
    ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kCreateNew));
    uint64_t offset = 0;
    for (const std::vector<float>* vector : {&parameters_, &momentum_}) {
      const auto all = std::as_bytes(std::span(*vector));
      const size_t size = all.size() / parts;
      auto rest = all.subspan(part * size, size);
      while (!rest.empty()) {
        const size_t piece = std::min<size_t>(rest.size(), kChunkElements * sizeof(float));
        ATOLL_RETURN_IF_ERROR(file.WriteAt(offset, rest.first(piece)));
        offset += piece;
        rest = rest.subspan(piece);
      }
    }
    return file.Sync();
  }

  absl::Status Time(const std::string& what, const std::function<absl::Status()>& work) {
    const SystemClock clock{};
    const uint64_t before = BytesHandedToTheKernel();
    const double cpu_before = CpuSeconds();
    const MonoTime start = clock.Now();
    ATOLL_RETURN_IF_ERROR(work());
    const double seconds = ToSeconds(clock.Now() - start);
    if (!samples_.contains(what)) order_.push_back(what);
    samples_[what].push_back({.seconds = seconds,
                              .cpu_seconds = CpuSeconds() - cpu_before,
                              .written_bytes = static_cast<double>(BytesHandedToTheKernel() - before)});
    return absl::OkStatus();
  }

  Sample Median(const std::string& what) const {
    std::vector<Sample> sorted = samples_.at(what);
    std::sort(sorted.begin(), sorted.end(),
              [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
    return sorted[sorted.size() / 2];
  }

  void Report() const {
    const double raw = std::min(Median("raw, one file").seconds, Median("raw, one file a shard").seconds);
    std::printf(
        "%llu MiB a version, %u shards\n\n| what | median s | of raw | CPU s | written / MIB "
        "|\n|---|---|---|---|---|\n",
        static_cast<unsigned long long>(bytes_ >> 20), kShards);
    // The new version, the previous one, and the contribution of the round.
    const double live = 2.0 * static_cast<double>(bytes_) + static_cast<double>(bytes_) / 4;
    std::printf("| most disk while storing, over live data and retained versions | | %.2f | | |\n",
                static_cast<double>(most_disk_bytes_) / live);
    for (const std::string& what : order_) {
      const Sample median = Median(what);
      std::printf("| %s | %.4f | %.2f | %.3f | %.3f |\n", what.c_str(), median.seconds, median.seconds / raw,
                  median.cpu_seconds, median.written_bytes / static_cast<double>(bytes_));
    }
  }

  const std::string dir_;
  const uint64_t bytes_;
  Manifest manifest_;
  FragmentLayout layout_;
  std::vector<float> parameters_;
  std::vector<float> momentum_;
  std::vector<std::byte> payload_;  // a contribution: the parameters as bf16
  std::unique_ptr<RunStore> store_;
  MergeEngine engine_{std::thread::hardware_concurrency(), CodecKind::kFp32};
  FragmentState state_;
  uint64_t most_disk_bytes_ = 0;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<Sample>> samples_;
};

absl::Status Main(int argc, char** argv) {
  const std::string dir = argc > 1 ? argv[1] : "";
  const uint64_t mib = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 512;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  if (mib < 16 || rounds < 1)
    return absl::InvalidArgumentError("usage: atoll-commit-bench [DIR] [MIB >= 16] [ROUNDS >= 1]");
  return InNewFolder(dir, "commit_bench",
                     [&](const std::string& folder) { return CommitBench(folder, mib).Run(rounds); });
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::ExitCodeOfBench("atoll-commit-bench", atl::Main(argc, argv)); }
