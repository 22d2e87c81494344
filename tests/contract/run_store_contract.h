#ifndef ATOLL_TESTS_CONTRACT_RUN_STORE_CONTRACT_H_
#define ATOLL_TESTS_CONTRACT_RUN_STORE_CONTRACT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/run_store.h"

// The promises of RunStore, for every implementation: instantiate RunStoreContract with a factory of
// harnesses and compile the run_store_*_contract.cc files into the same program.

namespace atl {

/// One place to keep a run, which outlives the stores opened on it.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;
  /// The store that was opened before is gone by then.
  virtual absl::StatusOr<std::unique_ptr<RunStore>> Open() = 0;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreHarness>()> make;
};

class RunStoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  static constexpr uint32_t kShards = 3;
  static constexpr uint64_t kChunkElements = 4096;

  void SetUp() override;

  /// Closes the store and opens it again, as after a restart; what it found is in recovery().
  void Reopen();
  RunStore& store() { return *store_; }
  const Recovery& recovery() const { return *recovery_; }
  bool found_a_run() const { return recovery_.has_value(); }

  void Create();
  /// Create and Seed with `fragments` fragments and one state vector.
  void CreateAndSeed(uint32_t fragments = 1);

  const FragmentLayout& layout(uint32_t fragment = 0) const { return layouts_[fragment]; }
  /// Different in every element and for every (fragment, version).
  FragmentTensors TensorsAt(uint32_t fragment, uint64_t version) const;
  static FragmentTensorsView ViewOf(const FragmentTensors& tensors);

  ContributionKey KeyOf(const std::string& worker, uint64_t base, uint32_t fragment = 0) const;
  Contribution ContributionFor(const ContributionKey& key) const;
  static std::string PayloadFor(const ContributionKey& key);
  /// Uploads the whole payload and accepts it.
  absl::Status Push(const ContributionKey& key);
  RoundRecord RecordFor(uint64_t version, const std::vector<std::string>& workers,
                        uint32_t fragment = 0) const;
  /// Pushes of these workers on version - 1, then the commit.
  void PushAndCommit(uint64_t version, const std::vector<std::string>& workers, uint32_t fragment = 0);
  absl::Status Store(uint64_t version, uint32_t keep, uint32_t fragment = 0);

  RunIdentity identity_;
  Manifest manifest_;
  std::vector<FragmentLayout> layouts_;

 private:
  std::unique_ptr<StoreHarness> harness_;
  std::unique_ptr<RunStore> store_;
  std::optional<Recovery> recovery_;
};

ConfigEntry ConfigAt(uint64_t version);
WorkerEntry WorkerNamed(const std::string& name);
std::string BytesOf(const Payload& payload);
absl::Status AppendString(Upload& upload, const std::string& bytes);

}  // namespace atl

#endif  // ATOLL_TESTS_CONTRACT_RUN_STORE_CONTRACT_H_
