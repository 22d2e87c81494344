#ifndef ATOLL_COMMON_TOKEN_SOURCE_H_
#define ATOLL_COMMON_TOKEN_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// Reads a token file: its first line, without surrounding blanks. InvalidArgument if it is empty or has
/// characters that a header cannot carry. NotFound and PermissionDenied name the file, unless
/// its path looks like a token itself.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

/// A token that is reloaded from its file, so that it can be replaced without a restart. Thread-safe.
class TokenSource {
 public:
  /// As ReadTokenFile. `clock` outlives this.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path, const Clock* clock);

  /// The token in the file, at most a second old; if the file is unreadable, the last readable token.
  std::string Current();

 private:
  TokenSource(std::string path, const Clock* clock, std::string text);

  const std::string path_;
  const Clock* const clock_;
  Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  MonoTime read_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_COMMON_TOKEN_SOURCE_H_
