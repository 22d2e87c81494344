#ifndef ATOLL_COMMON_TOKEN_SOURCE_H_
#define ATOLL_COMMON_TOKEN_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// The text of a token file: its first line, without blanks around it. InvalidArgument: there is none, or it
/// has something that cannot travel in a header. NotFound, PermissionDenied: names the file.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

/// A token that follows its file, so that it can be replaced under a running program. Thread-safe.
class TokenSource {
 public:
  /// As ReadTokenFile. `clock` outlives this.
  static absl::StatusOr<std::unique_ptr<TokenSource>> Open(const std::string& path, const Clock* clock);

  /// What the file holds now, or held a second ago; the last one that could be read.
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
