#include "storage/memory_store.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/contract/run_store_contract.h"
#include "tests/storage/temp_dir.h"

namespace atl {
namespace {

class MemoryHarness final : public StoreHarness {
 public:
  absl::StatusOr<std::unique_ptr<RunStore>> Open() override { return OpenMemoryStore(disk_); }

 private:
  const std::shared_ptr<MemoryDisk> disk_ = NewMemoryDisk();
};

class RocksDbHarness final : public StoreHarness {
 public:
  absl::StatusOr<std::unique_ptr<RunStore>> Open() override {
    return OpenRocksDbStore(
        {.data_dir = dir_.path() + "/run", .create_if_missing = true, .headroom_bytes = 0});
  }

 private:
  const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(
    Stores, RunStoreContract,
    testing::Values(StoreKind{"Memory", [] { return std::make_unique<MemoryHarness>(); }},
                    StoreKind{"RocksDb", [] { return std::make_unique<RocksDbHarness>(); }}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace atl
