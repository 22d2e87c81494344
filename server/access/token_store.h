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

/// What a token is to be good for.
struct TokenRequest {
  Role role = Role::kObserver;
  std::string name;
  std::optional<Duration> lifetime;  // nullopt: until it is revoked
  std::string created_by;
};

struct NewToken {
  std::string text;  // atoll_ID_SECRET, 256 random bits: here for the only time
  TokenRecord record;
};

/// The tokens that callers of a run may show: those in its directory (made, listed and revoked while it is
/// served), and those given with the start, which live as long as the process. Kept as SHA-256 only; a random
/// secret of 256 bits needs no salt and no slow hash. Thread-safe.
class TokenStore {
 public:
  /// `folder` (DATA_DIR/access) is made when it is not there, for its owner alone. DataLoss: the file in it
  /// is damaged. `clock` outlives this.
  /// The file that a store in this folder keeps its tokens in.
  static std::string FileIn(const std::string& folder);
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& folder, const Clock* clock);

  /// Durable when it returns. InvalidArgument: an admin's or observer's token without a name, a name that
  /// nobody may have, a lifetime that is none. ResourceExhausted: too many tokens, revoke some.
  absl::StatusOr<NewToken> Create(const TokenRequest& request);
  /// Durable, and in force for the next call that shows it. NotFound; FailedPrecondition: revoked already, or
  /// given with the start.
  absl::StatusOr<TokenRecord> Revoke(const std::string& id);
  /// By time of creation, the revoked and expired included; behind them what was given with the start.
  std::vector<TokenRecord> List() const;

  /// A token from elsewhere (a file that was given with the start, one for a worker that we launch): known
  /// until the process ends, or until something else is given under the same label, which also becomes its
  /// id. InvalidArgument: too short to be a secret.
  absl::Status Give(const std::string& label, Role role, const std::string& name, std::string_view text);

  /// Whose token this is. Unauthenticated: not known, expired, revoked. Never repeats the text; takes the
  /// same time for every text of a length. Does not touch the disk.
  absl::StatusOr<TokenRecord> Find(std::string_view text) const;

  /// When nobody could be an operator with a kept token (a new run; the last one was revoked or has expired):
  /// makes one and leaves it in FOLDER/admin.token, readable to its owner alone. The path when it did, else
  /// nothing.
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
