#ifndef ATOLL_TESTS_STORAGE_CRASH_CHECK_H_
#define ATOLL_TESTS_STORAGE_CRASH_CHECK_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/storage/store_model.h"

namespace atl {

/// The run that storage_crash_writer works on.
inline StoreModel CrashModel() { return StoreModel::Make(/*rows=*/600, /*payload_bytes=*/200000); }

/// How far the run is, as found on disk or as acknowledged.
struct CrashState {
  bool created = false;
  int64_t head = -1;  // -1: not seeded
  int64_t stored = 0;
  uint64_t event = 0;
  uint64_t incarnation = 0;        // of w0
  std::set<std::string> accepted;  // "worker@base"
};

/// Opens the store, reads back every tensor and payload that must be there and compares each with the model;
/// DataLoss when something differs.
absl::StatusOr<CrashState> ReadCrashState(const std::string& dir);

/// What the writer's output promises.
CrashState ParseAcknowledgements(const std::string& output);

/// DataLoss naming the promise that was broken.
absl::Status CheckPromises(const CrashState& promised, const CrashState& found);

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_CRASH_CHECK_H_
