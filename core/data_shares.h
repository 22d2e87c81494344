#ifndef ATOLL_CORE_DATA_SHARES_H_
#define ATOLL_CORE_DATA_SHARES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"

namespace atl {

/// A position in the shared data: the next sample of `partition` to read (core/partition.h).
struct DataPlace {
  uint32_t partition = 0;
  uint64_t position = 0;
  friend bool operator==(const DataPlace&, const DataPlace&) = default;
};

/// Tracks which partition of the shared data each worker reads in its round, and how far each partition is
/// consumed.
///
/// Consumed samples are those of committed contributions; their positions are stored with the version.
/// Promised samples also include those of accepted contributions of the open round; they are restored after a
/// restart from these contributions. A worker's range always starts at the promised position of its
/// partition, and only contributions move that position. So no sample is skipped, and none is read twice
/// unless the round that read it did not finish (its worker was lost, or a restart of the coordinator forgot
/// the reader).
///
/// A worker reads its own partition. If an unattended partition (its owner is gone, or nobody ever had it) is
/// behind the worker's own, the worker reads that one for this round. Only one worker reads a partition at a
/// time. If a worker returns while another worker is reading its partition, it reads that worker's partition
/// for the round, or any free one. A free one always exists, because there are at least as many partitions as
/// workers.
///
/// Pure state, not thread-safe.
class DataShares {
 public:
  /// 0: the data is local, and no other function may be called.
  explicit DataShares(uint32_t partitions) : partitions_(partitions) {}

  uint32_t count() const { return static_cast<uint32_t>(partitions_.size()); }
  void Restore(uint32_t partition, uint64_t consumed);
  uint64_t consumed(uint32_t partition) const { return partitions_[partition].consumed; }
  uint64_t promised(uint32_t partition) const { return partitions_[partition].promised; }

  /// The position at which the worker reads in its round on this base; repeated calls return the same
  /// position. `own`: the worker's partition. `unattended`: partitions whose owners are gone. `carried`: the
  /// worker has read up to here for its next contribution (error feedback after a rejection) and need not
  /// read it again. These samples are not promised, so another worker reads them if this one leaves.
  DataPlace Assign(const WorkerName& worker, Version base, uint32_t own, std::span<const uint32_t> unattended,
                   const std::optional<DataPlace>& carried);

  /// A contribution that read `place.partition` up to place.position was accepted. Promises these samples and
  /// ends the worker's round on bases up to this one.
  void Accepted(const WorkerName& worker, Version base, const DataPlace& place);
  /// The contribution is part of a committed version.
  void Committed(const DataPlace& place);
  /// The promised samples of the partition will not be committed, except those in `remaining`.
  void Withdrawn(uint32_t partition, uint64_t remaining);
  /// The worker is gone; another worker may read its partition.
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
