#ifndef ATOLL_BENCH_EXCHANGE_ISLAND_H_
#define ATOLL_BENCH_EXCHANGE_ISLAND_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/exchange/cpu_time.h"
#include "bench/exchange/meter.h"
#include "bench/exchange/program.h"
#include "bench/exchange/settings.h"
#include "bench/exchange/synthetic_model.h"
#include "client/rpc/grpc_connection.h"
#include "common/clock.h"

namespace atl {

/// One real coordinator program on a fresh folder, and workers that compute nothing: each on a thread and a
/// connection of its own in this process.
class Island {
 public:
  /// Starts, joins and seeds. `metered`: the first worker's bytes are counted, which costs time.
  static absl::StatusOr<std::unique_ptr<Island>> Start(const ExchangeSettings& settings, const Recipe& recipe,
                                                       uint32_t workers, StoreKind store, bool metered);
  ~Island();

  /// One exchange: all push, the coordinator merges, steps, publishes, all pull. Seconds from the first
  /// push's begin to the last pull's end.
  absl::StatusOr<double> Round();

  struct Traffic {
    uint64_t up = 0;  // bytes of the first worker's connection, everything above TCP
    uint64_t down = 0;
  };
  Traffic traffic() const;
  /// What each worker pushes.
  std::span<const std::byte> payload() const { return payload_; }
  uint64_t elements() const { return model_.elements; }
  /// Of the coordinator, so far.
  absl::StatusOr<uint64_t> PeakMemory() const { return program_->PeakMemory(); }
  /// Processor seconds of the coordinator so far.
  double cpu_seconds() const { return CpuSeconds(program_->pid()); }
  double push_s() const { return push_s_; }  // of the last round, the slowest worker's

 private:
  struct Member {
    std::unique_ptr<GrpcConnection> connection;
    MemberRef member;
    std::optional<Version> base;
    std::vector<std::byte> parameters;
    double push_s = 0;
  };

  Island(const Recipe& recipe, SyntheticModel model) : recipe_(recipe), model_(std::move(model)) {}
  absl::Status JoinAll(uint32_t workers, bool metered);
  absl::Status Pull(Member& member);
  absl::Status Push(Member& member);

  const Recipe recipe_;
  const SyntheticModel model_;
  const SystemClock clock_{};
  std::vector<std::byte> payload_;  // the same for every worker
  uint32_t payload_crc32c_ = 0;
  std::unique_ptr<CoordinatorProgram> program_;
  std::unique_ptr<Meter> meter_;
  std::vector<Member> members_;
  double push_s_ = 0;
};

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_ISLAND_H_
