#ifndef ATOLL_BENCH_LOAD_CROWD_H_
#define ATOLL_BENCH_LOAD_CROWD_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/exchange/program.h"
#include "bench/exchange/synthetic_model.h"
#include "client/rpc/grpc_connection.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

struct LoadSettings {
  uint32_t workers = 1000;
  uint32_t pushing = 64;
  double seconds = 60;
  uint64_t mib = 16;
  std::string program;
  std::string dir = ".";
};

struct LoadResult {
  unsigned cores = 0;
  uint64_t errors = 0;
  std::vector<std::string> first_errors;
  double idle_kib = 0;  // anonymous memory of the coordinator, for each worker that is joined and connected
  uint64_t heartbeats = 0;
  double client_p50_ms = 0;
  double client_p99_ms = 0;
  double client_max_ms = 0;
  double server_p99_ms = 0;  // the histogram's bound that 99 of 100 lie below
  uint64_t pushes = 0;
  uint64_t postponed = 0;  // refused with RESOURCE_EXHAUSTED and a delay, which is no error
  uint64_t versions = 0;
  double start_mib = 0;
  double idle_mib = 0;
  double peak_mib = 0;
};

/// A coordinator program and its crowd of workers in this process.
class Crowd {
 public:
  static absl::StatusOr<std::unique_ptr<Crowd>> Start(const LoadSettings& settings);
  ~Crowd();

  absl::StatusOr<LoadResult> Measure();

 private:
  struct Member {
    std::unique_ptr<GrpcConnection> connection;
    MemberRef member;
    std::optional<Version> base;
  };

  explicit Crowd(const LoadSettings& settings) : settings_(settings) {}
  absl::Status Join(uint32_t index);
  absl::Status Seed();
  absl::Status JoinAll();
  /// One thread's part: every member whose turn it is, until the time is up.
  void BeatOn(uint32_t thread);
  void ExchangeOn(uint32_t thread);
  void Exchange(Member& member, std::vector<std::byte>& parameters);
  void Note(const absl::Status& failure);
  void Summarise(LoadResult& result);

  const LoadSettings settings_;
  const SystemClock clock_{};
  SyntheticModel model_;
  std::unique_ptr<CoordinatorProgram> program_;
  std::vector<Member> members_;
  std::vector<std::byte> payload_;
  uint32_t payload_crc32c_ = 0;
  double idle_kib_ = 0;
  double start_mib_ = 0;
  double idle_mib_ = 0;
  MonoTime end_;

  std::atomic<uint64_t> push_journal_ = 0;
  std::atomic<uint64_t> postponed_ = 0;
  std::atomic<uint64_t> newest_ = 0;
  Mutex mutex_;
  std::vector<double> beats_ms_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> errors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_BENCH_LOAD_CROWD_H_
