#ifndef ATOLL_CORE_TIME_USE_H_
#define ATOLL_CORE_TIME_USE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace atl {

/// What a thread of a worker spends its time on. Values of TimeUse in types.proto.
enum class TimeUse : uint8_t {
  kCompute = 1,    // inner steps, up to the number that a contribution is planned to have
  kOverdue = 2,    // inner steps beyond it: the exchange before holds the next push back (overlapped)
  kData = 3,       // reading batches, moving to another part of the data
  kEncode = 4,     // measuring, encoding, packing and signing a pseudo-gradient
  kSave = 5,       // writing state for the worker's next life
  kPush = 6,       // sending a contribution, until its verdict
  kWait = 7,       // for the next version, or for a coordinator that is away
  kPull = 8,       // receiving parameters
  kApply = 9,      // decoding what was received, into the model
  kEvaluate = 10,  // the loss on held-out text
  kPause = 11,     // the run is paused by an operator
  kStart = 12,     // joining, building the model, seeding, leaving
  kIdle = 13,      // an exchange thread without an exchange
  kOther = 14,     // what is in no other
};
constexpr size_t kTimeUses = 15;  // 0 is none

/// Ten years: more than a process lives. A figure above it is a mistake or a lie.
inline constexpr double kLongestTimeSpent = 10 * 365.25 * 86400;

/// Seconds by TimeUse.
struct TimeSpent {
  std::array<double, kTimeUses> seconds{};

  double& operator[](TimeUse use) { return seconds[static_cast<size_t>(use)]; }
  double operator[](TimeUse use) const { return seconds[static_cast<size_t>(use)]; }
  double total() const;
  void Add(const TimeSpent& other);
};

/// "compute", "wait", ...: labels of metrics and words for people.
std::string_view TimeUseName(TimeUse use);

/// Those that the training thread can have, and those of an exchange thread, in the order in which they are
/// shown.
std::span<const TimeUse> TrainingUses();
std::span<const TimeUse> ExchangeUses();

/// The share of a training thread's time that goes into inner steps which arrive when they should: compute
/// over everything but pauses. 0 when nothing was spent.
double UtilisationOf(const TimeSpent& training);

}  // namespace atl

#endif  // ATOLL_CORE_TIME_USE_H_
