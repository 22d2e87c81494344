#ifndef ATOLL_SERVER_INGEST_SEED_UPLOAD_H_
#define ATOLL_SERVER_INGEST_SEED_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "server/coordinator.h"
#include "server/coordinator_context.h"
#include "server/rounds/fragment_state.h"
#include "server/rounds/tensor_buffer.h"

namespace atl {

/// The upload of version 0: gathers it in memory (which then is the version), checks it, stores it as a
/// whole. One thread at a time.
class SeedUpload final : public SeedSession {
 public:
  /// Takes the fragments of a run that was just seeded; called once, after version 0 is on disk.
  using Adopt = std::function<void(std::vector<FragmentState> fragments)>;

  static absl::StatusOr<std::unique_ptr<SeedSession>> Start(const CoordinatorContext& context,
                                                            const MemberRef& caller, const Manifest& manifest,
                                                            Adopt adopt);

  ~SeedUpload() override;
  absl::Status Append(FragmentId fragment, uint64_t offset, std::span<const std::byte> data) override;
  absl::StatusOr<SeedResult> Finish() override;

 private:
  SeedUpload(const CoordinatorContext& context, const MemberRef& caller, const Manifest& manifest,
             std::vector<FragmentLayout> layouts, Adopt adopt);
  absl::Status CheckComplete() const;
  absl::Status CheckValues() const;
  absl::Status CheckGrant() const;
  /// Passes `rejection` on. A disk that refuses the seed is the run's trouble, shown until a seed is stored.
  absl::Status NotStored(const absl::Status& rejection) const;
  absl::Status StoreVersionZero();

  const CoordinatorContext& context_;
  const MemberRef caller_;
  const Manifest manifest_;
  const std::vector<FragmentLayout> layouts_;
  const Adopt adopt_;
  std::vector<TensorBuffer> buffers_;
  size_t fragment_ = 0;    // that is being filled
  uint64_t received_ = 0;  // bytes of it
  bool ended_ = false;     // by its sender
};

}  // namespace atl

#endif  // ATOLL_SERVER_INGEST_SEED_UPLOAD_H_
