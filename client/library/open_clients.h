#ifndef ATOLL_CLIENT_LIBRARY_OPEN_CLIENTS_H_
#define ATOLL_CLIENT_LIBRARY_OPEN_CLIENTS_H_

#include <memory>

#include "atoll/client.h"
#include "client/library/client.h"

// The clients of this process that are open, by their handle. A handle is a number that no second client of
// the process gets, and never an address of memory. So a call with a closed handle finds nothing, also while
// another thread closes it. Thread-safe; no function waits for anything, and a fork leaves the table usable
// in the child.

namespace atl::library {

/// The handle of a client that is open from here on.
atl_client* AddOpen(std::shared_ptr<Client> client);
/// Null: it was closed. The caller's copy keeps the client alive for its call.
std::shared_ptr<Client> FindOpen(const atl_client* handle);
/// Closes the handle. Null: it was closed before.
std::shared_ptr<Client> RemoveOpen(const atl_client* handle);

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_OPEN_CLIENTS_H_
