#ifndef ATOLL_SERVER_WEB_REPLY_CACHE_H_
#define ATOLL_SERVER_WEB_REPLY_CACHE_H_

#include <functional>
#include <map>
#include <string>

#include "common/clock.h"
#include "common/http/exchange.h"
#include "common/mutex.h"

namespace atl {

/// Caches recent answers, so that many viewers cost the coordinator no more than one. Thread-safe; keeps at
/// most kMaxReplies. Two simultaneous requests may both compute the answer.
class ReplyCache {
 public:
  static constexpr size_t kMaxReplies = 32;

  explicit ReplyCache(const Clock* clock) : clock_(clock) {}

  WebReply Get(const std::string& key, Duration fresh, const std::function<WebReply()>& make);
  /// An action changed something: drops all answers.
  void Clear();

 private:
  struct Entry {
    MonoTime made;
    WebReply reply;
  };
  const Clock* const clock_;
  Mutex mutex_;
  uint64_t cleared_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_REPLY_CACHE_H_
