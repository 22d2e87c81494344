#include "core/time_use.h"

#include <numeric>

namespace atl {
namespace {

constexpr std::array<std::string_view, kTimeUses> kNames = {
    "unknown", "compute", "overdue",  "data",  "encode", "save", "push", "wait",
    "pull",    "apply",   "evaluate", "pause", "start",  "idle", "other"};

constexpr TimeUse kTrainingUses[] = {TimeUse::kCompute, TimeUse::kOverdue,  TimeUse::kData,  TimeUse::kEncode,
                                     TimeUse::kSave,    TimeUse::kPush,     TimeUse::kWait,  TimeUse::kPull,
                                     TimeUse::kApply,   TimeUse::kEvaluate, TimeUse::kPause, TimeUse::kStart,
                                     TimeUse::kOther};
constexpr TimeUse kExchangeUses[] = {TimeUse::kEncode, TimeUse::kSave,  TimeUse::kPush,
                                     TimeUse::kWait,   TimeUse::kPull,  TimeUse::kApply,
                                     TimeUse::kStart,  TimeUse::kOther, TimeUse::kIdle};

}  // namespace

double TimeSpent::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

void TimeSpent::Add(const TimeSpent& other) {
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] += other.seconds[i];
}

std::string_view TimeUseName(TimeUse use) {
  const auto index = static_cast<size_t>(use);
  return index < kNames.size() ? kNames[index] : kNames[0];
}

std::span<const TimeUse> TrainingUses() { return kTrainingUses; }
std::span<const TimeUse> ExchangeUses() { return kExchangeUses; }

double UtilisationOf(const TimeSpent& training) {
  const double all = training.total() - training[TimeUse::kPause];
  return all > 0 ? training[TimeUse::kCompute] / all : 0;
}

}  // namespace atl
