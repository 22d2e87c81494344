#ifndef ATOLL_STORAGE_RUN_LOADER_H_
#define ATOLL_STORAGE_RUN_LOADER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/record.h"
#include "storage/run_store.h"
#include "storage/store_index.h"

namespace atl {

struct LoadedRun {
  std::optional<Recovery> recovery;  // absent: nothing was ever written
  StoreIndex store_index;
};

/// Converts the records of `meta` to the run's state. DataLoss, with the key, for records that this program
/// cannot have written. Add every record once in key order, then call Finish. Not thread-safe.
class RunLoader {
 public:
  absl::Status Add(std::string_view key, std::string_view value);
  absl::StatusOr<LoadedRun> Finish() &&;

 private:
  absl::Status CheckWhole() const;
  absl::Status FinishFragment(const HeadEntry& head, const StoredEntry& stored);

  bool empty_ = true;
  bool has_identity_ = false;
  Recovery recovery_;
  std::vector<HeadEntry> heads_;
  std::vector<StoredEntry> stored_;
  std::vector<Contribution> contributions_;
  StoreIndex store_index_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_RUN_LOADER_H_
