#ifndef ATOLL_WORKER_CUDA_HOST_ACCESS_H_
#define ATOLL_WORKER_CUDA_HOST_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What the primitives of worker/cuda/device_on_host.h ask of the host executor.

namespace atl::device::host {

/// A line of the source. std::source_location would need clang 16.
struct Place {
  const char* file = "";
  uint32_t line = 0;

  static constexpr Place Current(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

enum class Access : uint8_t { kRead, kWrite, kAtomic };

/// Who accessed an element last, and in which interval between two barriers. Intervals are numbered over all
/// launches of an executor; 0 is none.
struct Mark {
  uint64_t interval : 48 = 0;
  uint64_t thread : 16 = 0;
};

/// Shadow of one element.
struct Shadow {
  Mark writer;
  Mark readers[2];  // two different threads of the last interval that read it, where there were two
  bool atomic = false;
  bool written = false;  // by anybody, ever (shared memory: in this block)
};

/// A named piece of device memory, shared or global, and its shadow.
struct Region {
  std::string name;
  std::byte* data = nullptr;
  size_t bytes = 0;
  size_t element = 1;  // bytes of one shadow
  bool shared = false;
  uint64_t read = 0;  // bytes that the last launch moved
  uint64_t written = 0;
  std::vector<Shadow> shadows = {};
};

struct Request {
  uint64_t offset = 0;  // bytes
  size_t bytes = 0;
  size_t alignment = 1;
  Access access = Access::kRead;
  Place place = {};
};

/// What a thread of a kernel may ask. The executor implements it for the thread that runs.
class ExecutorThread {
 public:
  virtual ~ExecutorThread() = default;
  virtual uint32_t thread_index() const = 0;
  virtual uint32_t block_index() const = 0;
  virtual uint32_t block_threads() const = 0;
  virtual void Barrier(Place place) = 0;
  /// The bits of all 32 threads of the warp, valid until this thread's next Exchange.
  virtual const uint64_t* Exchange(uint64_t bits, Place place) = 0;
  /// Where to access the memory; null when the access is wrong, which is then reported.
  virtual void* Check(Region* region, const Request& request) = 0;
  /// The block's memory of this name and place: the same for all of its threads.
  virtual Region* Shared(const char* name, Place place, size_t bytes, size_t element) = 0;
};

/// Of the kernel that runs on this thread of the machine. There is none outside of HostExecutor::Launch.
ExecutorThread& Current();

}  // namespace atl::device::host

#endif  // ATOLL_WORKER_CUDA_HOST_ACCESS_H_
