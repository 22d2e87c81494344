#ifndef ATOLL_STORAGE_META_KEYS_H_
#define ATOLL_STORAGE_META_KEYS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "storage/record.h"

// Keys in `meta`. Integers are big-endian, so that byte order is number order.

namespace atl::meta_keys {

inline constexpr std::string_view kIdentity = "identity";
inline constexpr std::string_view kManifest = "manifest";
inline constexpr std::string_view kConfigs = "config/";
inline constexpr std::string_view kWorkers = "worker/";
inline constexpr std::string_view kPartitions = "partition/";
inline constexpr std::string_view kHeads = "head/";
inline constexpr std::string_view kStored = "stored/";
inline constexpr std::string_view kRounds = "round/";
inline constexpr std::string_view kContributions = "contribution/";
inline constexpr std::string_view kEvaluations = "evaluation/";
inline constexpr std::string_view kEvents = "event/";
inline constexpr std::string_view kControl = "control";
inline constexpr std::string_view kConfirmations = "confirmation/";

std::string Event(uint64_t sequence);
std::string Round(FragmentId fragment, Version version);
/// What the keys of a version's confirmations begin with.
std::string ConfirmationsOf(FragmentId fragment, Version version);

/// Where a record lives: a function of its own fields, so that a record found under another key is seen.
std::string KeyOf(const RunIdentity& record);
std::string KeyOf(const Manifest& record);
std::string KeyOf(const ConfigEntry& record);
std::string Worker(const WorkerName& name);
std::string KeyOf(const WorkerEntry& record);
std::string KeyOf(const PartitionEntry& record);
std::string KeyOf(const HeadEntry& record);
std::string KeyOf(const StoredEntry& record);
std::string KeyOf(const RoundRecord& record);
std::string KeyOf(const Contribution& record);
std::string KeyOf(const ContributionKey& key);
std::string KeyOf(const EvaluationEntry& record);
std::string KeyOf(const EventEntry& record);
std::string KeyOf(const ControlEntry& record);
std::string KeyOf(const ConfirmationEntry& record);

/// The smallest string above every string that begins with `prefix` (which does not end in 0xff).
std::string PrefixEnd(std::string_view prefix);

}  // namespace atl::meta_keys

#endif  // ATOLL_STORAGE_META_KEYS_H_
