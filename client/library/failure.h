#ifndef ATOLL_CLIENT_LIBRARY_FAILURE_H_
#define ATOLL_CLIENT_LIBRARY_FAILURE_H_

#include <string>
#include <utility>

#include "atoll/client.h"

namespace atl::library {

/// What a call of the library returns: OK, or a code with a sentence. Never leaves it as an exception.
struct [[nodiscard]] Result {
  atl_code code = ATL_OK;
  std::string message = {};
  bool ok() const { return code == ATL_OK; }
};

inline Result Failure(atl_code code, std::string message) { return {code, std::move(message)}; }

/// "text" as printf makes it.
[[gnu::format(printf, 1, 2)]] std::string Text(const char* format, ...);

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_FAILURE_H_
