#include "server/access/denial_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

constexpr char kOthers[] = " others";

std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

DenialLog::DenialLog(const Logger& log, const Clock* clock)
    : log_(log.With("component", "access")), clock_(clock) {}

void DenialLog::Denied(std::string_view what, const std::string& peer, std::string_view why) {
  const MonoTime now = clock_->Now();
  uint64_t left_out = 0;
  {
    const MutexLock lock(&mutex_);
    std::string key = absl::StrCat(std::string(what), " ", HostOf(peer));
    if (!hosts_.contains(key) && hosts_.size() >= kMostHosts) {
      std::erase_if(hosts_, [now](const auto& host) {
        return now - host.second.written >= kQuiet && host.second.left_out == 0;
      });
      if (hosts_.size() >= kMostHosts) key = absl::StrCat(std::string(what), kOthers);
    }
    const auto [found, is_new] = hosts_.try_emplace(key);
    Host& host = found->second;
    if (!is_new && now - host.written < kQuiet) {
      ++host.left_out;
      return;
    }
    host.written = now;
    left_out = std::exchange(host.left_out, 0);
  }
  LogFields fields = {{"peer", peer}, {"why", why}};
  if (left_out > 0) fields.emplace_back("not_logged_before", left_out);
  log_.Warning(what, fields);
}

}  // namespace atl
