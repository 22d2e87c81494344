#ifndef ATOLL_STORAGE_RECORD_H_
#define ATOLL_STORAGE_RECORD_H_

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "storage/record_format.h"
#include "storage/run_store.h"

// The values of `meta`: one record for each of these types. Layout: docs/reference/storage_format.md.

namespace atl {

/// The newest committed version of a fragment.
struct HeadEntry {
  FragmentId fragment;
  Epoch epoch;
  Version version;
  uint64_t config_version = 0;  // the newest configuration when it was made: that of the round which it opens
  friend bool operator==(const HeadEntry&, const HeadEntry&) = default;
};

/// What seeding stores of one fragment.
StoredEntry VersionZero(const RunIdentity& identity, const FragmentLayout& layout,
                        const FragmentTensorsView& tensors);

template <typename T>
inline constexpr RecordKind kRecordKindOf = RecordKind{0};
template <>
inline constexpr RecordKind kRecordKindOf<RunIdentity> = RecordKind::kIdentity;
template <>
inline constexpr RecordKind kRecordKindOf<Manifest> = RecordKind::kManifest;
template <>
inline constexpr RecordKind kRecordKindOf<ConfigEntry> = RecordKind::kConfig;
template <>
inline constexpr RecordKind kRecordKindOf<WorkerEntry> = RecordKind::kWorker;
template <>
inline constexpr RecordKind kRecordKindOf<PartitionEntry> = RecordKind::kPartition;
template <>
inline constexpr RecordKind kRecordKindOf<HeadEntry> = RecordKind::kHead;
template <>
inline constexpr RecordKind kRecordKindOf<StoredEntry> = RecordKind::kStored;
template <>
inline constexpr RecordKind kRecordKindOf<RoundRecord> = RecordKind::kRound;
template <>
inline constexpr RecordKind kRecordKindOf<Contribution> = RecordKind::kContribution;
template <>
inline constexpr RecordKind kRecordKindOf<EvaluationEntry> = RecordKind::kEvaluation;
template <>
inline constexpr RecordKind kRecordKindOf<EventEntry> = RecordKind::kEvent;
template <>
inline constexpr RecordKind kRecordKindOf<ControlEntry> = RecordKind::kControl;
template <>
inline constexpr RecordKind kRecordKindOf<ConfirmationEntry> = RecordKind::kConfirmation;

template <typename T>
concept Record = kRecordKindOf<T>
!= RecordKind{0};

template <Record T>
std::string EncodeRecord(const T& record);

/// DataLoss naming `key` and the field for anything that EncodeRecord<T> cannot have written.
template <Record T>
absl::StatusOr<T> DecodeRecord(std::string_view key, std::string_view bytes);

}  // namespace atl

#endif  // ATOLL_STORAGE_RECORD_H_
