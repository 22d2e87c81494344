#ifndef ATOLL_SERVER_RPC_DECODE_ADMIN_H_
#define ATOLL_SERVER_RPC_DECODE_ADMIN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"
#include "core/protocol/confirmation_page.h"
#include "server/admin/admin_control.h"

// What operators ask for, from the admin port's messages. InvalidArgument naming the field.

namespace atl {

/// Bounds of docs/reference/wire_format.md.
inline constexpr size_t kMaxReasonBytes = 256;
inline constexpr size_t kMaxUserBytes = 64;
inline constexpr int kMaxSettings = 100;

ConfirmationQuery DecodeConfirmationQuery(const v1::ListConfirmationsRequest& request);
absl::Status CheckReason(const std::string& reason);
absl::StatusOr<RunAction> DecodeRunAction(const v1::ControlRunRequest& request);
absl::StatusOr<ControlWorkerCall> DecodeControlWorker(const v1::ControlWorkerRequest& request);
absl::StatusOr<ReadParametersCall> DecodeReadParameters(const v1::ReadParametersRequest& request);
absl::StatusOr<std::vector<ConfigSetting>> DecodeSettings(const v1::SetConfigRequest& request);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_DECODE_ADMIN_H_
