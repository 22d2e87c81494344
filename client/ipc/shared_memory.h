#ifndef ATOLL_CLIENT_IPC_SHARED_MEMORY_H_
#define ATOLL_CLIENT_IPC_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace atl::ipc {

/// Memory that two processes share: it can grow, and the kernel lets neither of them shrink it, so no access
/// to what was mapped can fail. Zero where nobody wrote. Not thread-safe.
class SharedMemory {
 public:
  /// None yet.
  SharedMemory() = default;
  /// Of a descriptor that this object owns from here on.
  explicit SharedMemory(int descriptor) : descriptor_(descriptor) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// New memory of no bytes, closed on exec, with a descriptor above those of the standard streams. False:
  /// errno says why.
  bool Create(const char* name);

  /// Makes the memory at least so large and maps that much. Earlier pointers are void. False: there is not so
  /// much memory (errno).
  bool Grow(uint64_t bytes);
  /// Maps at least so many bytes of what is there. Earlier pointers are void. False: it is not so large.
  bool Map(uint64_t bytes);

  int descriptor() const { return descriptor_; }
  /// What is mapped.
  std::span<std::byte> bytes() const { return {data_, mapped_}; }
  std::span<float> floats() const { return {reinterpret_cast<float*>(data_), mapped_ / sizeof(float)}; }

 private:
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace atl::ipc

#endif  // ATOLL_CLIENT_IPC_SHARED_MEMORY_H_
