#ifndef ATOLL_CLIENT_RPC_STORED_READER_H_
#define ATOLL_CLIENT_RPC_STORED_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/parameters/stored_parameters.h"
#include "protos/transport/channel_security.h"

namespace atl {

/// Reads tensors through the admin port at `address`. `check` sees the run before its tensors are read, and
/// may reject it. Unavailable: nobody answers there; the message says what is wrong with the connection.
/// FailedPrecondition: there is no such version or checkpoint, or no admin port at this address.
absl::StatusOr<StoredParameters> ReadStoredParameters(const std::string& address,
                                                      const std::shared_ptr<const ChannelSecurity>& security,
                                                      const ParametersQuery& query, const CheckRun& check);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_STORED_READER_H_
