#ifndef ATOLL_SERVER_RPC_ENCODE_ADMIN_H_
#define ATOLL_SERVER_RPC_ENCODE_ADMIN_H_

#include "absl/status/status.h"
#include "atoll/v1/admin.pb.h"
#include "server/admin/admin_control.h"

// What operators are told, as messages of the admin port.

namespace atl {

/// Internal when the recorded bytes are not a RunConfig.
absl::Status EncodeConfig(const ConfigView& view, v1::RecordedConfig* message);
void EncodeExtension(const ExtensionView& view, v1::ExtendRunReply* reply);
void EncodeScale(const ScaleResult& result, v1::ScaleWorkersReply* reply);
void EncodeLauncher(const LauncherView& view, v1::LauncherStatus* message);
void EncodeCheckpoint(const CheckpointView& view, v1::CheckpointInfo* message);
void EncodeRestore(const RestoreResult& result, v1::RestoreCheckpointReply* reply);
void EncodeVerify(const VerifyView& view, v1::VerifyProgress* message);
/// Internal when the recorded bytes are not a RunConfig.
absl::Status EncodeParameters(const ParametersView& view, v1::ParametersHeader* message);
void EncodePiece(const ParameterPiece& piece, v1::ParametersChunk* message);
void EncodeMetrics(const MetricsView& view, v1::GetMetricsReply* reply);
void EncodeRounds(const RoundListView& view, v1::ListRoundsReply* reply);
void EncodePoint(const MetricPointView& view, v1::MetricPoint* message);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ENCODE_ADMIN_H_
