#include "storage/run_loader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/manifest.h"
#include "storage/describe.h"
#include "storage/meta_keys.h"

namespace atl {
namespace {

template <typename T>
absl::StatusOr<T> Decode(std::string_view key, std::string_view value) {
  ATOLL_ASSIGN_OR_RETURN(T record, DecodeRecord<T>(key, value));
  if (meta_keys::KeyOf(record) == key) return record;
  return absl::DataLossError(absl::StrFormat("record %s: it belongs under another key, %s",
                                             absl::CHexEscape(std::string(key)),
                                             absl::CHexEscape(meta_keys::KeyOf(record))));
}

template <typename T>
absl::Status Append(std::vector<T>& list, std::string_view key, std::string_view value) {
  ATOLL_ASSIGN_OR_RETURN(T record, Decode<T>(key, value));
  list.push_back(std::move(record));
  return absl::OkStatus();
}

bool IsAscending(const std::vector<Version>& versions) {
  return std::adjacent_find(versions.begin(), versions.end(), std::greater_equal<>()) == versions.end();
}

}  // namespace

absl::Status RunLoader::Add(std::string_view key, std::string_view value) {
  empty_ = false;
  if (key == meta_keys::kIdentity) {
    has_identity_ = true;
    ATOLL_ASSIGN_OR_RETURN(recovery_.identity, Decode<RunIdentity>(key, value));
    return absl::OkStatus();
  }
  if (key == meta_keys::kManifest) {
    ATOLL_ASSIGN_OR_RETURN(recovery_.manifest, Decode<Manifest>(key, value));
    return absl::OkStatus();
  }
  if (key == meta_keys::kControl) {
    ATOLL_ASSIGN_OR_RETURN(recovery_.control, Decode<ControlEntry>(key, value));
    return absl::OkStatus();
  }
  if (key.starts_with(meta_keys::kConfigs)) return Append(recovery_.configs, key, value);
  if (key.starts_with(meta_keys::kWorkers)) return Append(recovery_.workers, key, value);
  if (key.starts_with(meta_keys::kPartitions)) return Append(recovery_.partitions, key, value);
  if (key.starts_with(meta_keys::kHeads)) return Append(heads_, key, value);
  if (key.starts_with(meta_keys::kStored)) return Append(stored_, key, value);
  if (key.starts_with(meta_keys::kRounds)) return Append(recovery_.rounds, key, value);
  if (key.starts_with(meta_keys::kContributions)) return Append(contributions_, key, value);
  if (key.starts_with(meta_keys::kEvaluations)) return Append(recovery_.evaluations, key, value);
  if (key.starts_with(meta_keys::kConfirmations)) return Decode<ConfirmationEntry>(key, value).status();
  if (key.starts_with(meta_keys::kEvents)) {
    ATOLL_ASSIGN_OR_RETURN(const EventEntry event, Decode<EventEntry>(key, value));
    recovery_.last_event_sequence = std::max(recovery_.last_event_sequence, event.sequence);
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrFormat(
      "record %s: this version does not know this key; was the run written by a newer version?",
      absl::CHexEscape(std::string(key))));
}

absl::Status RunLoader::CheckWhole() const {
  if (!has_identity_) return absl::DataLossError("record identity is missing, but other records exist");
  if (recovery_.configs.empty()) return absl::DataLossError("record config/1 is missing");
  for (size_t i = 0; i < recovery_.configs.size(); ++i) {
    if (recovery_.configs[i].version == i + 1) continue;
    return absl::DataLossError(absl::StrFormat("record config/%d is missing", i + 1));
  }
  if (heads_.size() != stored_.size() || heads_.empty() == recovery_.manifest.has_value()) {
    return absl::DataLossError(
        absl::StrFormat("seeding is incomplete: manifest %s, %d heads, %d stored versions",
                        recovery_.manifest ? "present" : "absent", heads_.size(), stored_.size()));
  }
  for (size_t i = 0; i < heads_.size(); ++i) {
    const StoredEntry& stored = stored_[i];
    if (heads_[i].fragment.value() == i && stored.fragment.value() == i && !stored.versions.empty() &&
        IsAscending(stored.versions) && stored.versions.back() <= heads_[i].version) {
      continue;
    }
    return absl::DataLossError(
        absl::StrFormat("records head/%d and stored/%d contradict each other or are missing", i, i));
  }
  for (const HeadEntry& head : heads_) {
    if (head.config_version >= 1 && head.config_version <= recovery_.configs.size()) continue;
    return absl::DataLossError(absl::StrFormat("record head/%d names configuration %d, but only %d exist",
                                               head.fragment.value(), head.config_version,
                                               recovery_.configs.size()));
  }
  if (!recovery_.manifest) return absl::OkStatus();
  const absl::Status valid = ValidateManifest(*recovery_.manifest);
  if (valid.ok()) return valid;
  return absl::DataLossError(absl::StrFormat("record manifest: %s", std::string(valid.message())));
}

absl::Status RunLoader::FinishFragment(const HeadEntry& head, const StoredEntry& stored) {
  FragmentRecovery fragment{
      .fragment = head.fragment,
      .stored = stored.versions.back(),
      .head = head.version,
      .to_replay = {},
      .accepted = store_index_.contributions().Pending(store_index_.identity()->epoch, head.fragment),
      .config_version = head.config_version};
  for (const RoundRecord& round : recovery_.rounds) {
    if (round.fragment == head.fragment && round.version > fragment.stored)
      fragment.to_replay.push_back(round);
  }
  Version expected = fragment.stored;
  for (const RoundRecord& round : fragment.to_replay) {
    expected = Next(expected);
    if (round.version != expected) break;
    for (const Contribution& contribution : round.contributions) {
      if (store_index_.contributions().Find(contribution.key) != nullptr) continue;
      return absl::DataLossError(absl::StrFormat("%s is needed to rebuild %s, but its record is missing",
                                                 Describe(contribution.key),
                                                 Describe(round.fragment, round.version)));
    }
  }
  if (expected != head.version || fragment.to_replay.size() != expected.value() - fragment.stored.value()) {
    return absl::DataLossError(
        absl::StrFormat("fragment %d: the stored version is %d and the head is %d, but the round records "
                        "between them do not match",
                        head.fragment.value(), fragment.stored.value(), head.version.value()));
  }
  recovery_.fragments.push_back(std::move(fragment));
  return absl::OkStatus();
}

absl::StatusOr<LoadedRun> RunLoader::Finish() && {
  if (empty_) return LoadedRun{};
  ATOLL_RETURN_IF_ERROR(CheckWhole());
  store_index_.AppliedCreate(recovery_.identity);
  store_index_.AppliedConfig(recovery_.configs.back());
  for (size_t i = 0; i < heads_.size(); ++i) store_index_.AppliedFragment(heads_[i], stored_[i]);
  for (const Contribution& contribution : contributions_) store_index_.AppliedAccept(contribution);
  for (const RoundRecord& round : recovery_.rounds) store_index_.AppliedHistory(round);
  for (size_t i = 0; i < heads_.size(); ++i) ATOLL_RETURN_IF_ERROR(FinishFragment(heads_[i], stored_[i]));
  return LoadedRun{.recovery = std::move(recovery_), .store_index = std::move(store_index_)};
}

}  // namespace atl
