#ifndef ATOLL_SERVER_ACCESS_TOKEN_FILE_H_
#define ATOLL_SERVER_ACCESS_TOKEN_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/access_policy.h"

namespace atl {

/// What is kept of a token: never the token.
struct TokenRecord {
  std::string id;  // 8 hexadecimal digits, which the token shows too
  Role role = Role::kObserver;
  std::string name;    // whom it stands for; a worker's: the only name that it may use, empty: any
  std::string sha256;  // of the whole token, 64 hexadecimal digits
  int64_t created_unix_ns = 0;
  int64_t expires_unix_ns = 0;  // 0: never
  int64_t revoked_unix_ns = 0;  // 0: not revoked
  std::string created_by;
};

/// The tokens of a run at rest: JSON, as docs/reference/storage_format.md gives it.
std::string EncodeTokens(const std::vector<TokenRecord>& tokens);
/// DataLoss saying what is wrong with it.
absl::StatusOr<std::vector<TokenRecord>> DecodeTokens(std::string_view text);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_TOKEN_FILE_H_
