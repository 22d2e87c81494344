#ifndef ATOLL_WORKER_CUDA_HOST_EXECUTOR_H_
#define ATOLL_WORKER_CUDA_HOST_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "common/random.h"
#include "simulate/fiber.h"
#include "worker/cuda/device.h"
#include "worker/cuda/host_access.h"
#include "worker/cuda/shadow_memory.h"

namespace atl::device {

/// Whether the kernels may read what an allocation holds at first.
enum class Content : uint8_t { kInitialised, kUninitialised };

/// Runs kernels (worker/cuda/device.h) on the processor. The threads of a block are fibers; a seed decides
/// which one runs, where it gives way, and the order of the blocks. Blocks run one after another.
///
/// It reports: accesses of one element by two threads, at least one of which writes, that no barrier orders
/// and that are not both atomic (also between blocks); accesses out of bounds or unaligned; reads of memory
/// that nobody has written; barriers and warp operations that not all threads reach, or at different places;
/// kernels that do not end. docs/internals/kernels.md says what it cannot find.
///
/// Not thread-safe; one launch at a time on a thread of the machine.
class HostExecutor final : private host::ExecutorThread {
 public:
  struct Options {
    uint64_t seed = 0;
    uint32_t accesses_per_switch = 64;  // mean; 0: a thread gives way only at barriers and warp operations
    size_t most_reports = 8;            // further ones are counted
    uint64_t most_accesses = uint64_t{1} << 32;  // of a launch
  };

  explicit HostExecutor(const Options& options);
  ~HostExecutor() override;
  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  /// Makes `memory`, which outlives the executor, device memory. The name is that of reports and of
  /// traffic().
  template <typename T>
  GlobalSpan<T> Global(const std::string& name, std::span<T> memory,
                       Content content = Content::kInitialised) {
    auto* data = const_cast<std::remove_const_t<T>*>(memory.data());
    return GlobalSpan<T>(
        AddGlobal(name, reinterpret_cast<std::byte*>(data), memory.size_bytes(), sizeof(T), content));
  }

  /// Runs Kernel::Run(arguments) on blocks * threads threads. `threads` is a multiple of 32, at most 1024.
  /// Internal, with one line per finding, when the kernel did something wrong: what it wrote is then not to
  /// be used.
  template <typename Kernel>
  absl::Status Launch(uint32_t blocks, uint32_t threads, const typename Kernel::Arguments& arguments) {
    return Run(Kernel::kName, blocks, threads, [&arguments] { Kernel::Run(arguments); });
  }

  /// Device memory that a launch moved.
  struct Traffic {
    std::string name;
    uint64_t read = 0;     // bytes
    uint64_t written = 0;  // bytes; an atomic access counts in both
  };
  /// Of the last launch, by allocation, in the order of Global.
  std::vector<Traffic> traffic() const;
  /// Bytes of shared memory that a block of the last launch declared.
  size_t shared_bytes() const;

 private:
  enum class State : uint8_t { kReady, kAtBarrier, kAtWarp, kEnded };
  struct Worker;
  struct Thread {
    std::unique_ptr<Worker> worker;
    State state = State::kReady;
    host::Place place;  // of what it waits at
  };
  struct Warp {
    uint64_t values[2][kWarp] = {};  // of the exchange under way and of the last one
    uint64_t exchanges = 0;
    uint32_t arrived = 0;
    host::Place place;
  };

  uint32_t thread_index() const override { return running_; }
  uint32_t block_index() const override { return block_; }
  uint32_t block_threads() const override { return static_cast<uint32_t>(threads_.size()); }
  void Barrier(host::Place place) override;
  const uint64_t* Exchange(uint64_t bits, host::Place place) override;
  void* Check(host::Region* region, const host::Request& request) override;
  host::Region* Shared(const char* name, host::Place place, size_t bytes, size_t element) override;

  host::Region* AddGlobal(const std::string& name, std::byte* data, size_t bytes, size_t element,
                          Content content);
  absl::Status Run(const char* kernel, uint32_t blocks, uint32_t threads, const std::function<void()>& run);
  void RunBlock(uint32_t block);
  static std::vector<std::unique_ptr<Worker>>& IdleWorkers();
  void EndThreads();
  void MakeThreads(uint32_t threads, const std::function<void()>& run);
  void GiveWay();
  void MayGiveWay();
  void ReleaseBarrier();
  /// From a thread of the kernel: ends the launch. Does not return, so that what the thread holds then is
  /// leaked.
  void Stop();
  void Report(const std::string& report);
  std::string Waiting() const;

  const Options options_;
  SplitMixGenerator random_;
  std::deque<host::Region> globals_;
  std::deque<host::Region> shared_;
  std::vector<std::unique_ptr<std::byte[]>> shared_memory_;
  host::Intervals intervals_;
  std::string kernel_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<uint32_t> ready_;
  host::Place barrier_;
  uint32_t at_barrier_ = 0;
  uint32_t running_ = 0;
  uint32_t block_ = 0;
  uint64_t accesses_ = 0;
  bool stopped_ = false;
  std::vector<std::string> reports_;
  uint64_t further_reports_ = 0;
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_HOST_EXECUTOR_H_
