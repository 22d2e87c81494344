#ifndef ATOLL_CORE_DATA_SHARES_H_
#define ATOLL_CORE_DATA_SHARES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"

namespace atl {

/// A place in the shared data: the sample of `partition` that is read next (core/partition.h).
struct DataPlace {
  uint32_t partition = 0;
  uint64_t position = 0;
  friend bool operator==(const DataPlace&, const DataPlace&) = default;
};

/// Which part of the shared data each worker reads in its round, and how far every part was consumed.
///
/// Consumed is what committed contributions say; it is stored with their version. Promised is that and what
/// accepted contributions of the open round say; it is known again after a restart, from those contributions.
/// A range always begins at what is promised of its partition, and only contributions move that: so no sample
/// is ever passed over, and none is read twice unless the round that read it came to no end (its worker was
/// lost, or the coordinator forgot in a restart who was reading).
///
/// A worker reads its own partition. When the partition of somebody who is gone (or that nobody ever had)
/// lies behind the worker's own, it reads that instead, for this one round. A partition is read by one worker
/// at a time: who comes back while his is being read by another takes that other's for the round, or any
/// that is free; there always is one, because there are as many partitions as workers at least.
///
/// Pure state, not thread-safe.
class DataShares {
 public:
  /// 0: the data is local, and nothing here is to be called.
  explicit DataShares(uint32_t partitions) : partitions_(partitions) {}

  uint32_t count() const { return static_cast<uint32_t>(partitions_.size()); }
  void Restore(uint32_t partition, uint64_t consumed);
  uint64_t consumed(uint32_t partition) const { return partitions_[partition].consumed; }
  uint64_t promised(uint32_t partition) const { return partitions_[partition].promised; }

  /// Where the worker reads in its round on this base; the same place when it asks again. `own` is the
  /// partition it has, `unattended` are those whose owners are gone. `carried`: up to here the worker has
  /// read what will be part of its next contribution (error feedback after a refusal), and need not read it
  /// again; it is not promised, so that another would read it if the worker went.
  DataPlace Assign(const WorkerName& worker, Version base, uint32_t own, std::span<const uint32_t> unattended,
                   const std::optional<DataPlace>& carried);

  /// A contribution that read `place.partition` up to place.position was accepted: it is promised, and the
  /// worker's round on bases up to this one is over.
  void Accepted(const WorkerName& worker, Version base, const DataPlace& place);
  /// It is part of a version.
  void Committed(const DataPlace& place);
  /// What was promised of the partition will not be committed, but for what `remaining` says.
  void Withdrawn(uint32_t partition, uint64_t remaining);
  /// The worker is gone, and whatever it was reading may be read by another.
  void Release(const WorkerName& worker);
  /// Workers in the middle of a round.
  std::vector<WorkerName> readers() const;

 private:
  struct Partition {
    uint64_t consumed = 0;
    uint64_t promised = 0;
    std::optional<WorkerName> reader = std::nullopt;
  };
  struct Round {
    Version base = {};
    uint32_t own = 0;
    DataPlace place = {};
  };
  bool Free(uint32_t partition) const { return !partitions_[partition].reader.has_value(); }
  uint32_t Choose(uint32_t own, uint64_t own_place, std::span<const uint32_t> unattended) const;
  uint32_t Substitute(uint32_t own) const;

  std::vector<Partition> partitions_;
  std::map<WorkerName, Round> rounds_;
};

}  // namespace atl

#endif  // ATOLL_CORE_DATA_SHARES_H_
