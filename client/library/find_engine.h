#ifndef ATOLL_CLIENT_LIBRARY_FIND_ENGINE_H_
#define ATOLL_CLIENT_LIBRARY_FIND_ENGINE_H_

#include <string>
#include <vector>

#include "client/ipc/messages.h"
#include "client/library/failure.h"

namespace atl::library {

/// The value of an option, or "".
std::string ValueOf(const std::vector<ipc::Option>& options, const std::string& name);

/// The path of atoll-engine: option engine, $ATOLL_ENGINE, or beside this library. ATL_NOT_FOUND says where
/// it was looked for.
Result FindEngine(const std::vector<ipc::Option>& options, std::string& path);

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_FIND_ENGINE_H_
