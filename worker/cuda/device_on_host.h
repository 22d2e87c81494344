#ifndef ATOLL_WORKER_CUDA_DEVICE_ON_HOST_H_
#define ATOLL_WORKER_CUDA_DEVICE_ON_HOST_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "worker/cuda/host_access.h"

// worker/cuda/device.h in the host executor. Every access goes through ExecutorThread, which knows the place
// in the source. An access that the executor rejects is left out: it reads zeros and writes nothing.

#define ATOLL_DEVICE inline
#define ATOLL_SHARED(type, name) type name(#name)
#define ATOLL_UNROLL

namespace atl::device {

using Place = host::Place;

inline uint32_t ThreadIndex() { return host::Current().thread_index(); }
inline uint32_t BlockIndex() { return host::Current().block_index(); }
inline uint32_t BlockThreads() { return host::Current().block_threads(); }
inline void Barrier(Place place = Place::Current()) { host::Current().Barrier(place); }

template <typename T>
T ShuffleFrom(T value, uint32_t lane, Place place = Place::Current()) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = host::Current().Exchange(bits, place)[lane % kWarp];
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <typename T>
T ShuffleXor(T value, uint32_t mask, Place place = Place::Current()) {
  return ShuffleFrom(value, (ThreadIndex() % kWarp) ^ mask, place);
}
inline uint32_t Ballot(bool flag, Place place = Place::Current()) {
  const uint64_t* flags = host::Current().Exchange(flag ? 1 : 0, place);
  uint32_t word = 0;
  for (uint32_t lane = 0; lane < kWarp; ++lane) word |= static_cast<uint32_t>(flags[lane]) << lane;
  return word;
}
inline uint32_t CountBits(uint32_t word) { return static_cast<uint32_t>(std::popcount(word)); }

/// What GlobalSpan and SharedArray have in common: checked accesses of a region of memory.
template <typename T>
class CheckedMemory {
 public:
  using Value = std::remove_const_t<T>;

  uint64_t size() const { return region_ == nullptr ? 0 : region_->bytes / sizeof(T); }

  Value Load(uint64_t index, Place place = Place::Current()) const { return LoadAs<Value>(index, place); }
  void Store(uint64_t index, Value value, Place place = Place::Current()) const {
    StoreAs(index, value, place);
  }

  template <typename Wide>
  Wide LoadAs(uint64_t index, Place place = Place::Current()) const {
    Wide value = {};
    const void* at = Check<Wide>(index, host::Access::kRead, place);
    if (at != nullptr) std::memcpy(&value, at, sizeof(Wide));
    return value;
  }
  template <typename Wide>
  void StoreAs(uint64_t index, Wide value, Place place = Place::Current()) const {
    void* at = Check<Wide>(index, host::Access::kWrite, place);
    if (at != nullptr) std::memcpy(at, &value, sizeof(Wide));
  }
  template <typename Change>
  void Atomically(uint64_t index, const Change& change, Place place) const {
    void* at = Check<Value>(index, host::Access::kAtomic, place);
    if (at == nullptr) return;
    Value value;
    std::memcpy(&value, at, sizeof(Value));
    value = change(value);
    std::memcpy(at, &value, sizeof(Value));
  }

 protected:
  CheckedMemory() = default;
  explicit CheckedMemory(host::Region* region) : region_(region) {}

 private:
  template <typename Wide>
  void* Check(uint64_t index, host::Access access, Place place) const {
    return host::Current().Check(region_, {.offset = index * sizeof(T),
                                           .bytes = sizeof(Wide),
                                           .alignment = alignof(Wide),
                                           .access = access,
                                           .place = place});
  }

  host::Region* region_ = nullptr;
};

/// Made by HostExecutor::Global.
template <typename T>
class GlobalSpan : public CheckedMemory<T> {
 public:
  GlobalSpan() = default;
  explicit GlobalSpan(host::Region* region) : CheckedMemory<T>(region) {}

  void AtomicMin(uint64_t index, T value, Place place = Place::Current()) const {
    this->Atomically(
        index, [value](T old) { return value < old ? value : old; }, place);
  }
};

template <typename T, uint32_t kSize>
class SharedArray : public CheckedMemory<T> {
 public:
  explicit SharedArray(const char* name, Place place = Place::Current())
      : CheckedMemory<T>(host::Current().Shared(name, place, sizeof(T) * kSize, sizeof(T))) {}

  void AtomicAdd(uint32_t index, T value, Place place = Place::Current()) {
    this->Atomically(
        index, [value](T old) { return static_cast<T>(old + value); }, place);
  }
  void AtomicOr(uint32_t index, T value, Place place = Place::Current()) {
    this->Atomically(
        index, [value](T old) { return static_cast<T>(old | value); }, place);
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_DEVICE_ON_HOST_H_
