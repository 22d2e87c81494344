#ifndef ATOLL_SERVER_RPC_RECEIVED_BYTES_H_
#define ATOLL_SERVER_RPC_RECEIVED_BYTES_H_

#include <cstdint>

namespace atl {

/// Bytes that a TCP socket has received so far; 0 when the system does not say.
uint64_t ReceivedBytes(int fd);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_RECEIVED_BYTES_H_
