#ifndef ATOLL_CLIENT_PARAMETERS_PARAMETERS_ASSEMBLER_H_
#define ATOLL_CLIENT_PARAMETERS_PARAMETERS_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/admin.grpc.pb.h"
#include "client/parameters/stored_parameters.h"

namespace atl {

v1::ReadParametersRequest ParametersQueryToProto(const ParametersQuery& query);

/// Makes StoredParameters of the messages of one call. Not thread-safe.
class ParametersAssembler {
 public:
  ParametersAssembler(ParametersQuery query, CheckRun check);

  /// DataLoss: the message is not the next one of a whole answer, or was damaged on its way.
  absl::Status Add(const v1::ParametersChunk& message);
  /// After the last message. DataLoss: some are missing.
  absl::StatusOr<StoredParameters> Finish() &&;

 private:
  absl::Status Begin(const v1::ParametersHeader& header);
  /// Where the next bytes belong; null: everything is there.
  std::vector<float>* Target();
  void Advance(uint64_t bytes);

  const ParametersQuery query_;
  const CheckRun check_;
  StoredParameters result_;
  bool begun_ = false;
  size_t fragment_ = 0;
  size_t vector_ = 0;      // 0: the parameters
  uint64_t received_ = 0;  // bytes of it
};

/// Makes the call and reads its messages. `translate` makes the error of a call that failed.
absl::StatusOr<StoredParameters> ReadParameters(
    v1::Admin::Stub& stub, grpc::ClientContext& context, const ParametersQuery& query, const CheckRun& check,
    const std::function<absl::Status(const grpc::Status&)>& translate);

}  // namespace atl

#endif  // ATOLL_CLIENT_PARAMETERS_PARAMETERS_ASSEMBLER_H_
