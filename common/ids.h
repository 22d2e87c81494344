#ifndef ATOLL_COMMON_IDS_H_
#define ATOLL_COMMON_IDS_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

// Strong identifier types, so that a version cannot be passed as an epoch.

namespace atl {

template <typename Tag, typename Rep>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  friend constexpr bool operator==(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{};
};

/// Number of outer steps committed to a fragment; 0 is the seeded model.
using Version = StrongId<struct VersionTag, uint64_t>;
/// Random number, new at every restore; old pushes and deltas cannot enter a new epoch.
using Epoch = StrongId<struct EpochTag, uint64_t>;
/// One life of a worker process, issued by the coordinator at Join. Later incarnations are larger.
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;
/// A set of tensors synchronised together; dense from 0.
using FragmentId = StrongId<struct FragmentIdTag, uint32_t>;
/// One RocksDB database with one writer thread; dense from 0.
using ShardId = StrongId<struct ShardIdTag, uint32_t>;

/// The name under which a worker joined: [a-z0-9]([a-z0-9.-]*), at most kMaxWorkerName bytes. Summation order
/// is the byte order of these names.
using WorkerName = std::string;
inline constexpr size_t kMaxWorkerName = 63;

inline constexpr Version Next(Version v) { return Version(v.value() + 1); }

}  // namespace atl

template <typename Tag, typename Rep>
struct std::hash<atl::StrongId<Tag, Rep>> {
  size_t operator()(atl::StrongId<Tag, Rep> id) const { return std::hash<Rep>{}(id.value()); }
};

#endif  // ATOLL_COMMON_IDS_H_
