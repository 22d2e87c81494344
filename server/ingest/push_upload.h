#ifndef ATOLL_SERVER_INGEST_PUSH_UPLOAD_H_
#define ATOLL_SERVER_INGEST_PUSH_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/byte_budget.h"
#include "core/payload_scan.h"
#include "server/coordinator.h"
#include "server/coordinator_context.h"
#include "server/run/coordinator_state.h"

namespace atl {

/// One upload of a contribution: reserves its bytes, stages, checks, makes durable, counts. One thread at a
/// time.
class PushUpload final : public PushSession {
 public:
  /// All that can be known before a byte is sent has been checked when this returns.
  static absl::StatusOr<std::unique_ptr<PushSession>> Start(const CoordinatorContext& context,
                                                            const MemberRef& caller,
                                                            const PushHeader& header);
  ~PushUpload() override;

  bool already_accepted() const override { return admission_.duplicate; }
  uint64_t received_bytes() const override;
  absl::Status Append(uint64_t offset, std::span<const std::byte> data) override;
  absl::StatusOr<PushResult> Finish() override;

 private:
  PushUpload(const CoordinatorContext& context, MemberRef caller, const PushHeader& header,
             Contributions::Admission admission);
  absl::Status Open();
  absl::Status StartOver();
  absl::Status Write(uint64_t offset, std::span<const std::byte> data);
  absl::Status CheckPayload();
  absl::StatusOr<double> CheckStagedPayload();
  absl::Status CheckPayloadGaps();
  absl::StatusOr<PushResult> Accept();
  absl::StatusOr<PushResult> Duplicate();

  const CoordinatorContext& context_;
  const MemberRef caller_;
  const PushHeader header_;
  Contributions::Admission admission_;
  const MonoTime started_;
  ByteBudget::Reservation reservation_;
  std::unique_ptr<Upload> upload_;
  uint64_t arrived_bytes_ = 0;  // by this stream
  bool any_data_ = false;
  // Checks of the payload, taken while its pieces are in the cache. Absent when a part of it came by an
  // earlier stream: then the staged file is read.
  std::optional<PayloadScan> scan_;
  uint32_t crc32c_ = 0;  // of what `scan_` has seen
};

/// Counts a contribution that was refused, and announces it unless its worker's refusals fill the event log;
/// hands the status back.
absl::Status NoteRejection(const CoordinatorContext& context, const WorkerName& worker, const PushKey& push,
                           const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_SERVER_INGEST_PUSH_UPLOAD_H_
