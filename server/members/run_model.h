#ifndef ATOLL_SERVER_MEMBERS_RUN_MODEL_H_
#define ATOLL_SERVER_MEMBERS_RUN_MODEL_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/ids.h"
#include "core/manifest.h"

namespace atl {

/// The model of a run: the manifest that its seed brought. Immutable; copies share the manifest.
class RunModel {
 public:
  /// Of a run that is not seeded.
  RunModel() = default;
  explicit RunModel(Manifest manifest)
      : manifest_(std::make_shared<const Manifest>(std::move(manifest))), hash_(ManifestHash(*manifest_)) {}

  bool known() const { return manifest_ != nullptr; }
  /// Requires known().
  const Manifest& manifest() const { return *manifest_; }
  /// Empty: not known.
  const std::string& hash() const { return hash_; }

 private:
  std::shared_ptr<const Manifest> manifest_;
  std::string hash_;
};

/// MANIFEST_MISMATCH, saying what differs. Requires that the run's model is known and another one.
absl::Status RejectModel(const WorkerName& worker, const RunModel& run, const Manifest& other);
absl::Status RejectModel(const WorkerName& worker, std::string_view difference);

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_RUN_MODEL_H_
