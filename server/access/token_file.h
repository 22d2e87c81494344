#ifndef ATOLL_SERVER_ACCESS_TOKEN_FILE_H_
#define ATOLL_SERVER_ACCESS_TOKEN_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/access_policy.h"

namespace atl {

/// The stored record of a token, which never contains the token itself.
struct TokenRecord {
  std::string id;  // 8 hexadecimal digits, which the token shows too
  Role role = Role::kObserver;
  std::string name;    // the holder; for a worker: the only name it may use, empty: any
  std::string sha256;  // of the whole token, 64 hexadecimal digits
  int64_t created_unix_ns = 0;
  int64_t expires_unix_ns = 0;  // 0: never
  int64_t revoked_unix_ns = 0;  // 0: not revoked
  std::string created_by;
};

/// The stored tokens of a run: JSON, described in docs/reference/storage_format.md.
std::string EncodeTokens(const std::vector<TokenRecord>& tokens);
/// DataLoss describes the problem.
absl::StatusOr<std::vector<TokenRecord>> DecodeTokens(std::string_view text);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_TOKEN_FILE_H_
