#include "server/members/join_rate_limiter.h"

#include <algorithm>

namespace atl {
namespace {

constexpr char kTheRest[] = "*";
constexpr double kLongestWait = 30;

}  // namespace

void JoinRateLimiter::Drain(Bucket& bucket, double rate, MonoTime now) {
  bucket.used = std::max(0.0, bucket.used - rate * ToSeconds(now - bucket.at));
  bucket.at = now;
}

void JoinRateLimiter::ForgetIdle(MonoTime now) {
  std::erase_if(by_address_, [&](const auto& entry) {
    Bucket bucket = entry.second;
    Drain(bucket, rate_ / 2, now);
    return bucket.used == 0;
  });
}

std::optional<Duration> JoinRateLimiter::Enter(const std::string& address, MonoTime now) {
  if (by_address_.size() >= kMostAddresses && !by_address_.contains(address)) ForgetIdle(now);
  const bool known = by_address_.contains(address) || by_address_.size() < kMostAddresses;
  Bucket& own = by_address_[known ? address : kTheRest];
  Drain(all_, rate_, now);
  Drain(own, rate_ / 2, now);
  const double most = rate_ * kBurstSeconds;
  const double over =
      std::max(address.empty() ? 0 : (own.used + 1 - most / 2) / (rate_ / 2), (all_.used + 1 - most) / rate_);
  // A bucket that holds less than one call lets one in when it is empty.
  if (over > 0 && (all_.used > 0 || own.used > 0)) {
    return Seconds(std::clamp(over, 1.0, kLongestWait));
  }
  all_.used += 1;
  own.used += 1;
  return std::nullopt;
}

}  // namespace atl
