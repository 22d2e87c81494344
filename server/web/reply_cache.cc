#include "server/web/reply_cache.h"

#include <utility>

namespace atl {

WebReply ReplyCache::Get(const std::string& key, Duration fresh, const std::function<WebReply()>& make) {
  uint64_t cleared = 0;
  const MonoTime now = clock_->Now();
  {
    MutexLock lock(&mutex_);
    const auto it = entries_.find(key);
    if (it != entries_.end() && now - it->second.made < fresh) return it->second.reply;
    cleared = cleared_;
  }
  WebReply reply = make();
  MutexLock lock(&mutex_);
  if (cleared != cleared_ || reply.status != 200) return reply;
  if (entries_.size() >= kMaxReplies && entries_.find(key) == entries_.end()) entries_.clear();
  entries_[key] = Entry{now, reply};
  return reply;
}

void ReplyCache::Clear() {
  MutexLock lock(&mutex_);
  entries_.clear();
  ++cleared_;
}

}  // namespace atl
