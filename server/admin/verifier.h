#ifndef ATOLL_SERVER_ADMIN_VERIFIER_H_
#define ATOLL_SERVER_ADMIN_VERIFIER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/ids.h"
#include "core/fragment_plan.h"
#include "server/admin/admin_control.h"
#include "server/rounds/merge_engine.h"
#include "server/rounds/recover_fragments.h"
#include "storage/run_store.h"

namespace atl {

/// Proves that what is on disk is what was committed: recomputes a retained version from the one stored
/// before it and its round's contributions, and compares parameters, optimizer state and published payload
/// with the hashes in the round record; then does the same with the version's own stored tensors. Rounds go
/// on meanwhile: it has a MergeEngine of its own with one thread, and needs as much memory as recovery does
/// (3 x 4 bytes per parameter with Nesterov), one fragment at a time.
class Verifier {
 public:
  /// Fills confirmed_by and denied_by of a version. Null: nobody confirms.
  using Confirmations = std::function<void(FragmentId, Version, VerifyView&)>;

  /// `store` outlives it. `layouts`: of all fragments, in order.
  Verifier(RunStore* store, std::vector<FragmentLayout> layouts, const RunOptions& run,
           Confirmations confirmations);

  /// `version` absent: every retained version of every fragment, ascending. `report` is called on the
  /// caller's thread once per fragment and version; false ends the work. A damaged file is DIFFERENT with the
  /// file named in the message; a version whose base or contributions are gone is NOT_KEPT. NotFound when
  /// `version` was never committed. Not thread-safe: one call at a time.
  absl::Status Verify(std::optional<Version> version, const AdminControl::VerifyReport& report);

 private:
  struct Item {
    FragmentId fragment;
    Version version;
  };
  /// What a version is recomputed from.
  struct Source {
    FragmentState base;
    MergeInputs mapped;
  };
  absl::StatusOr<Source> LoadSource(const FragmentLayout& layout, const RoundRecord& record);
  absl::StatusOr<std::vector<Item>> Plan(std::optional<Version> version) const;
  VerifyView Check(const Item& item);
  absl::Status Recompute(const FragmentLayout& layout, const RoundRecord& record, VerifyView& view);
  absl::Status CompareStored(const FragmentLayout& layout, const RoundRecord& record, VerifyView& view);

  RunStore* const store_;
  const std::vector<FragmentLayout> layouts_;
  const Confirmations confirmations_;
  MergeEngine engine_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_VERIFIER_H_
