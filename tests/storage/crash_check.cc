#include "tests/storage/crash_check.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace atl {
namespace {

std::string Name(const ContributionKey& key) { return absl::StrCat(key.worker, "@", key.base.value()); }

absl::Status CheckFragment(const StoreModel& model, RunStore& store, const Recovery& recovery) {
  const FragmentRecovery& fragment = recovery.fragments.front();
  ATOLL_RETURN_IF_ERROR(model.CheckVersion(store, fragment.stored));
  for (const RoundRecord& round : fragment.to_replay) {
    for (const Contribution& c : round.contributions) ATOLL_RETURN_IF_ERROR(model.CheckPayload(store, c.key));
  }
  for (const Contribution& c : fragment.accepted) ATOLL_RETURN_IF_ERROR(model.CheckPayload(store, c.key));
  if (recovery.rounds.size() != fragment.head.value())
    return absl::DataLossError("a round record is missing");
  for (const RoundRecord& round : recovery.rounds) {
    if (round == model.RecordOf(round.version, "w0")) continue;
    return absl::DataLossError(absl::StrCat("the record of round ", round.version.value(), " differs"));
  }
  const bool advanced =
      fragment.head == Version(0) ||
      (recovery.partitions.size() == 1 && recovery.partitions[0].samples_consumed == fragment.head.value());
  return advanced ? absl::OkStatus() : absl::DataLossError("head and partition moved apart");
}

}  // namespace

absl::StatusOr<CrashState> ReadCrashState(const std::string& dir) {
  const StoreModel model = CrashModel();
  CrashState state;
  auto opened = OpenRocksDbStore({.data_dir = dir, .create_if_missing = false});
  if (absl::IsNotFound(opened.status())) return state;
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, std::move(opened));
  ATOLL_ASSIGN_OR_RETURN(const std::optional<Recovery> recovery, store->Recover());
  if (!recovery) return state;
  state.created = true;
  state.event = recovery->last_event_sequence;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<EventEntry> events, store->ReadEvents(0, SIZE_MAX));
  if (events.size() != state.event) return absl::DataLossError("an event before the last one is missing");
  if (!recovery->workers.empty()) state.incarnation = recovery->workers.front().incarnation.value();
  if (recovery->fragments.empty()) return state;
  ATOLL_RETURN_IF_ERROR(CheckFragment(model, *store, *recovery));
  state.head = static_cast<int64_t>(recovery->fragments[0].head.value());
  state.stored = static_cast<int64_t>(recovery->fragments[0].stored.value());
  for (const Contribution& c : recovery->fragments[0].accepted) state.accepted.insert(Name(c.key));
  return state;
}

CrashState ParseAcknowledgements(const std::string& output) {
  CrashState state;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string ack, what, argument;
    int64_t head = 0;
    words >> ack >> head >> what >> argument;
    if (ack != "ACK") continue;
    state.created = true;
    state.head = std::max(state.head, head);
    if (what == "accepted") state.accepted.insert(argument);
    if (what == "stored") state.stored = std::stoll(argument);
    if (what == "event") state.event = std::stoull(argument);
    if (what == "worker") state.incarnation = std::stoull(argument);
  }
  return state;
}

absl::Status CheckPromises(const CrashState& promised, const CrashState& found) {
  const auto broken = [](const std::string& what, auto was, auto is) {
    return absl::DataLossError(absl::StrCat(what, ": ", was, " was promised, ", is, " found"));
  };
  if (promised.created && !found.created) return absl::DataLossError("the run is gone");
  if (found.head < promised.head) return broken("head", promised.head, found.head);
  if (found.head > promised.head + 1) return broken("head, at most one ahead of", promised.head, found.head);
  if (found.stored < promised.stored) return broken("stored", promised.stored, found.stored);
  if (found.event < promised.event) return broken("event", promised.event, found.event);
  if (found.incarnation < promised.incarnation) {
    return broken("incarnation", promised.incarnation, found.incarnation);
  }
  for (const std::string& name : promised.accepted) {
    const bool open = std::stoll(name.substr(name.find('@') + 1)) == found.head;
    if (open && !found.accepted.contains(name)) {
      return absl::DataLossError(absl::StrCat("accepted contribution ", name, " is gone"));
    }
  }
  return absl::OkStatus();
}

}  // namespace atl
