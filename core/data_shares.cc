#include "core/data_shares.h"

#include <algorithm>

namespace atl {

void DataShares::Restore(uint32_t partition, uint64_t consumed) {
  if (partition >= partitions_.size()) return;
  partitions_[partition].consumed = consumed;
  partitions_[partition].promised = std::max(partitions_[partition].promised, consumed);
}

uint32_t DataShares::Choose(uint32_t own, uint64_t own_place, std::span<const uint32_t> unattended) const {
  if (!Free(own)) return Substitute(own);
  uint32_t chosen = own;
  uint64_t lowest = own_place;
  for (const uint32_t partition : unattended) {
    if (!Free(partition) || promised(partition) >= lowest) continue;
    chosen = partition;
    lowest = promised(partition);
  }
  return chosen;
}

uint32_t DataShares::Substitute(uint32_t own) const {
  const auto reader = rounds_.find(*partitions_[own].reader);
  if (reader != rounds_.end() && Free(reader->second.own)) return reader->second.own;
  std::optional<uint32_t> chosen;
  for (uint32_t partition = 0; partition < count(); ++partition) {
    if (Free(partition) && (!chosen || promised(partition) < promised(*chosen))) chosen = partition;
  }
  // Only when somebody reads without having a partition: better the same samples twice than none.
  return chosen.value_or(own);
}

DataPlace DataShares::Assign(const WorkerName& worker, Version base, uint32_t own,
                             std::span<const uint32_t> unattended, const std::optional<DataPlace>& carried) {
  if (const auto it = rounds_.find(worker); it != rounds_.end() && it->second.base == base) {
    return it->second.place;
  }
  Release(worker);
  uint64_t own_place = promised(own);
  if (carried && carried->partition == own) own_place = std::max(own_place, carried->position);
  const uint32_t partition = Choose(own, own_place, unattended);
  const DataPlace place{.partition = partition,
                        .position = partition == own ? own_place : promised(partition)};
  partitions_[partition].reader = worker;
  rounds_[worker] = {.base = base, .own = own, .place = place};
  return place;
}

void DataShares::Accepted(const WorkerName& worker, Version base, const DataPlace& place) {
  Partition& partition = partitions_[place.partition];
  partition.promised = std::max(partition.promised, place.position);
  const auto round = rounds_.find(worker);
  if (round != rounds_.end() && round->second.base <= base) Release(worker);
}

void DataShares::Committed(const DataPlace& place) {
  Partition& partition = partitions_[place.partition];
  partition.consumed = std::max(partition.consumed, place.position);
  partition.promised = std::max(partition.promised, partition.consumed);
}

void DataShares::Withdrawn(uint32_t partition, uint64_t remaining) {
  partitions_[partition].promised = std::max(partitions_[partition].consumed, remaining);
}

void DataShares::Release(const WorkerName& worker) {
  const auto round = rounds_.find(worker);
  if (round == rounds_.end()) return;
  std::optional<WorkerName>& reader = partitions_[round->second.place.partition].reader;
  if (reader == worker) reader.reset();
  rounds_.erase(round);
}

std::vector<WorkerName> DataShares::readers() const {
  std::vector<WorkerName> names;
  for (const auto& [name, round] : rounds_) names.push_back(name);
  return names;
}

}  // namespace atl
