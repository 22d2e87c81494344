#ifndef ATOLL_SERVER_RUN_CONFIG_HISTORY_H_
#define ATOLL_SERVER_RUN_CONFIG_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config_codec.h"
#include "server/admin/admin_control.h"
#include "server/run/config_snapshot.h"
#include "storage/run_store.h"

namespace atl {

/// Every configuration that the run was ever given, and what may be changed of the newest. Not thread-safe.
///
/// What may be changed while the run goes on is what the coordinator reads at the opening of a round or
/// whenever it needs it, and what workers read again when a plan names a newer configuration than theirs.
/// What tensors on disk, the data or the schedule depend on (model, pull codec, kinds of optimizers, tokens
/// of a step, shards) may not. docs/reference/wire_format.md ("SetConfig") lists them.
class ConfigHistory {
 public:
  /// `recorded`: ascending, never empty. `codec` outlives this; null: nothing can be changed or compared.
  ConfigHistory(std::vector<ConfigEntry> recorded, const ConfigCodec* codec)
      : recorded_(std::move(recorded)), codec_(codec) {}

  struct Proposal {
    ConfigEntry entry;  // to be stored
    ConfigPtr snapshot;
    std::vector<std::string> changes;  // "path: old -> new"
  };
  /// The newest configuration with these values, as the next version; without changes, the newest version
  /// itself, which is not stored again. When H is among them, run.rounds is set with it, and
  /// run.planned_tokens where these rounds are more, so that the token budget, and with it the learning rate
  /// schedule, stays what it was.
  ///   InvalidArgument     nothing to set; a path or value that is not allowed, or an H of which one round
  ///                       exceeds the budget: names it
  ///   FailedPrecondition  a field that a run cannot change, or values that it has already
  ///   Aborted             expected_version is not 0 and not the newest
  absl::StatusOr<Proposal> Propose(const std::vector<ConfigSetting>& settings, uint64_t expected_version,
                                   const std::string& author, int64_t now_unix_ns) const;

  /// The newest configuration with `rounds` more (core/schedule.h, Extended); `position`: where the next
  /// round will begin. InvalidArgument for 0 rounds and for more than a run may have; Aborted as Propose.
  absl::StatusOr<Proposal> ProposeExtension(uint32_t rounds, double position, uint64_t expected_version,
                                            const std::string& author, int64_t now_unix_ns) const;

  /// The proposal is on disk.
  void Record(const ConfigEntry& entry) { recorded_.push_back(entry); }

  /// All, ascending, each with what differs from the one before.
  absl::StatusOr<std::vector<ConfigView>> List() const;

  /// Those that can be read, by version; empty without a codec.
  std::map<uint64_t, RunOptions> Runs() const;

 private:
  absl::Status CheckVersion(uint64_t expected) const;
  /// Of settings that do not fit a recorded run.planned_tokens: FailedPrecondition, as Propose, when one of
  /// them cannot change at all. The operator never named the budget.
  absl::Status CheckWithoutBudget(const std::vector<ConfigSetting>& settings) const;
  absl::StatusOr<Proposal> Next(const std::vector<ConfigSetting>& settings, const std::string& author,
                                int64_t now_unix_ns, std::vector<ConfigChange>& changes) const;

  std::vector<ConfigEntry> recorded_;
  const ConfigCodec* const codec_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_CONFIG_HISTORY_H_
