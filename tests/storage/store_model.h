#ifndef ATOLL_TESTS_STORAGE_STORE_MODEL_H_
#define ATOLL_TESTS_STORAGE_STORE_MODEL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "storage/run_store.h"

// A small run whose every byte is a function of its version and worker, so that whoever reopens a store can
// tell whether it holds what was written.

namespace atl {

struct StoreModel {
  RunIdentity identity;
  Manifest manifest;
  FragmentLayout layout;
  uint64_t payload_bytes = 0;

  /// One fragment of `rows` * 256 elements, one state vector.
  static StoreModel Make(int64_t rows, uint64_t payload_bytes);

  FragmentTensors TensorsAt(Version version) const;
  ContributionKey KeyOf(const std::string& worker, Version base) const;
  std::string PayloadOf(const ContributionKey& key) const;
  Contribution ContributionOf(const ContributionKey& key) const;
  /// The round that makes `version` from one contribution of `worker` on the version before.
  RoundRecord RecordOf(Version version, const std::string& worker) const;

  absl::Status CreateRun(RunStore& store) const;
  absl::Status Seed(RunStore& store) const;
  /// Uploads in pieces, resuming what is there, and accepts.
  absl::Status Push(RunStore& store, const ContributionKey& key) const;
  absl::Status Commit(RunStore& store, Version version, const std::string& worker) const;
  absl::Status Store(RunStore& store, Version version, uint32_t keep) const;
  /// DataLoss unless the store reads this version back bit for bit.
  absl::Status CheckVersion(RunStore& store, Version version) const;
  absl::Status CheckPayload(RunStore& store, const ContributionKey& key) const;
};

FragmentTensorsView ViewOf(const FragmentTensors& tensors);

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_STORE_MODEL_H_
