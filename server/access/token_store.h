#ifndef ATOLL_SERVER_ACCESS_TOKEN_STORE_H_
#define ATOLL_SERVER_ACCESS_TOKEN_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "server/access/token_file.h"

namespace atl {

/// The properties of a new token.
struct TokenRequest {
  Role role = Role::kObserver;
  std::string name;
  std::optional<Duration> lifetime;  // nullopt: until it is revoked
  std::string created_by;
};

struct NewToken {
  std::string text;  // atoll_ID_SECRET, 256 random bits; returned only here
  TokenRecord record;
};

/// The tokens that callers of a run may use: those in its directory, which operators create, list and revoke,
/// and those given at the start, which are valid while the process runs. Stores only SHA-256 hashes; a random
/// secret of 256 bits needs no salt and no slow hash. Thread-safe.
class TokenStore {
 public:
  /// Creates `folder` (DATA_DIR/access) if needed, accessible only to its owner. DataLoss if the file in it
  /// is damaged.
  /// `clock` outlives this.
  /// The file that a store in this folder keeps its tokens in.
  static std::string FileIn(const std::string& folder);
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& folder, const Clock* clock);

  /// Durable when it returns. InvalidArgument: an admin or observer token without a name, an invalid name or
  /// an invalid lifetime. ResourceExhausted: too many tokens; revoke some.
  absl::StatusOr<NewToken> Create(const TokenRequest& request);
  /// Durable when it returns; applies to the next call with this token. NotFound; FailedPrecondition if it is
  /// already revoked or was given at the start.
  absl::StatusOr<TokenRecord> Revoke(const std::string& id);
  /// By time of creation, including revoked and expired tokens, followed by those given at the start.
  std::vector<TokenRecord> List() const;

  /// Adds a token from elsewhere (a file given at the start, or one for a launched worker). Valid until the
  /// process ends or another token is given under the same label. The label becomes its id. InvalidArgument
  /// if it is too short for a secret.
  absl::Status Give(const std::string& label, Role role, const std::string& name, std::string_view text);

  /// The holder of this token. Unauthenticated if it is unknown, expired or revoked. Never repeats the text,
  /// takes the same time for all texts of the same length, and does not access the disk.
  absl::StatusOr<TokenRecord> Find(std::string_view text) const;

  /// If no stored token is a valid admin token (a new run, or the last one was revoked or expired), creates
  /// one in FOLDER/admin.token, readable only by its owner. Returns the path if it did, else nullopt.
  absl::StatusOr<std::string> EnsureAdmin();

 private:
  TokenStore(std::string folder, const Clock* clock, std::vector<TokenRecord> kept);
  int64_t WallNs() const;
  std::vector<TokenRecord> Kept() const;
  /// Not kept yet.
  absl::StatusOr<NewToken> Prepare(const TokenRequest& request) const;
  absl::Status Keep(std::vector<TokenRecord> kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  absl::Status Add(const TokenRecord& token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  const std::string folder_;
  const Clock* const clock_;
  mutable Mutex write_mutex_;  // one change of the file at a time; held over the disk's work
  mutable Mutex mutex_;
  std::vector<TokenRecord> kept_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, TokenRecord> given_ ABSL_GUARDED_BY(mutex_);  // by label
};

/// A fresh secret in the form of tokens, under this id.
std::string MakeTokenText(const std::string& id);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_TOKEN_STORE_H_
