#include "cli/overlap_forecast.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/fragment_schedule.h"

namespace atl {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A few workers out of step behave like many. They get a proportional share of the coordinator's link.
constexpr uint32_t kMostWorkers = 4;
// In multiples of an exchange's duration.
constexpr double kWarmUp = 8;
constexpr double kMeasured = 24;
// Longer exchanges are not simulated: rounding to whole cycles then costs little.
constexpr double kLongestSimulated = 8;
// If an exchange takes close to a whole number of cycles, single runs differ. This many runs are averaged.
constexpr uint32_t kRuns = 8;
// Share of a link that carries payload while data moves both ways: 1448 of 1514 bytes of a packet (the rest
// are Ethernet, IP and TCP headers), less one acknowledgement of 66 bytes per two packets of the other
// direction.
constexpr double kPayloadShare = 0.935;
// Variation of step times, and offset between the workers' starts, as fractions of a step.
constexpr double kStepJitter = 0.1;
constexpr double kStepOffset = 0.3;
constexpr double kLeftover = 1e-3;  // bytes; a transfer with fewer bytes left is complete

enum class At : uint8_t { kNowhere, kPush, kReceived, kOthers, kPull, kAnswered };

struct Exchange {
  At at = At::kNowhere;
  double ready = 0;  // when its transfer reaches full speed
  double left = 0;   // bytes
  double acknowledged = 0;
  double waited = 0;  // seconds of waiting for other workers
};

struct Trainer {
  FragmentSchedule schedule;
  std::vector<Exchange> exchanges;
  std::vector<std::vector<uint64_t>> pushed;  // steps of the pushes, by fragment
  double next_step = 0;
};

class Simulation {
 public:
  Simulation(const OverlappedTraffic& traffic, uint32_t seed) : traffic_(traffic), random_(seed) {
    const uint32_t workers = std::clamp(traffic.workers, 1U, kMostWorkers);
    worker_rate_ = kPayloadShare * traffic.worker_rate;
    coordinator_rate_ = kPayloadShare * traffic.coordinator_rate * workers / std::max(traffic.workers, 1U);
    for (uint32_t w = 0; w < workers; ++w) {
      trainers_.push_back({.schedule = {traffic.steps, traffic.fragments, traffic.delay_steps},
                           .exchanges = std::vector<Exchange>(traffic.fragments),
                           .pushed = std::vector<std::vector<uint64_t>>(traffic.fragments),
                           .next_step = traffic.step_s * (1 + kStepOffset * w)});
    }
  }

  /// Simulates exchanges that last about this many cycles.
  double SecondsBetweenPushes(double cycles) {
    const auto first_step = static_cast<uint64_t>(kWarmUp * cycles * traffic_.steps);
    const auto last_step = static_cast<uint64_t>((kWarmUp + kMeasured) * cycles * traffic_.steps);
    while (trainers_.front().schedule.now() < last_step) Advance();
    // Counting in steps removes the jitter of their times.
    double steps = 0;
    double intervals = 0;
    for (const Trainer& trainer : trainers_) {
      for (const std::vector<uint64_t>& pushed : trainer.pushed) {
        const auto begin = std::ranges::lower_bound(pushed, first_step);
        if (pushed.end() - begin < 2) continue;
        steps += static_cast<double>(pushed.back() - *begin);
        intervals += static_cast<double>(pushed.end() - begin - 1);
      }
    }
    return traffic_.step_s * (intervals > 0 ? steps / intervals : cycles * traffic_.steps);
  }

 private:
  /// Advances to the next step, or to the next start or end of a transfer.
  void Advance() {
    SetRates(At::kPush, push_rates_);
    SetRates(At::kPull, pull_rates_);
    double until = kNever;
    for (const Trainer& trainer : trainers_) until = std::min(until, trainer.next_step);
    ForEachTransfer([&](const Exchange& exchange, double rate) {
      until = std::min(until, exchange.ready > now_ ? exchange.ready : now_ + exchange.left / rate);
    });
    ForEachTransfer([&](Exchange& exchange, double rate) {
      if (exchange.ready <= now_) exchange.left -= rate * (until - now_);
    });
    now_ = until;
    EndTransfers();
    for (Trainer& trainer : trainers_) {
      if (trainer.next_step <= now_) Step(trainer);
    }
  }

  template <typename Visit>
  void ForEachTransfer(Visit visit) {
    for (size_t w = 0; w < trainers_.size(); ++w) {
      for (Exchange& exchange : trainers_[w].exchanges) {
        if (exchange.at == At::kPush) visit(exchange, push_rates_[w]);
        if (exchange.at == At::kPull) visit(exchange, pull_rates_[w]);
      }
    }
  }

  /// Rate of each transfer in this direction, by worker.
  void SetRates(At direction, std::vector<double>& rates) const {
    std::vector<uint32_t> own;
    uint32_t all = 0;
    for (const Trainer& trainer : trainers_) {
      own.push_back(static_cast<uint32_t>(std::ranges::count_if(
          trainer.exchanges, [&](const Exchange& e) { return e.at == direction && e.ready <= now_; })));
      all += own.back();
    }
    rates.clear();
    for (const uint32_t count : own) {
      rates.push_back(std::min(worker_rate_ / std::max(count, 1U), coordinator_rate_ / std::max(all, 1U)));
    }
  }

  void EndTransfers() {
    for (uint32_t fragment = 0; fragment < traffic_.fragments; ++fragment) {
      for (Trainer& trainer : trainers_) {
        Exchange& exchange = trainer.exchanges[fragment];
        const bool done = exchange.ready <= now_ && exchange.left <= kLeftover;
        if (exchange.at == At::kPull && done) exchange.at = At::kAnswered;
        if (exchange.at == At::kPush && done) exchange.at = At::kReceived;
      }
    }
    for (uint32_t fragment = 0; fragment < traffic_.fragments; ++fragment) {
      for (Trainer& trainer : trainers_) Acknowledge(trainer, fragment);
      const bool all_there = std::ranges::all_of(
          trainers_, [&](const Trainer& trainer) { return trainer.exchanges[fragment].at == At::kOthers; });
      if (all_there) Publish(fragment);
    }
  }

  /// An acknowledgement arrives after the data that is already buffered for this worker, which is most of a
  /// pull in progress. So the pull of the next fragment starts when the current one ends. Pulls run one after
  /// another instead of sharing the link and all ending late.
  void Acknowledge(Trainer& trainer, uint32_t fragment) {
    const bool pulls = std::ranges::count(trainer.exchanges, At::kPull, &Exchange::at) > 0;
    Exchange& exchange = trainer.exchanges[fragment];
    if (exchange.at == At::kReceived && !pulls) {
      exchange.at = At::kOthers;
      exchange.acknowledged = now_;
    }
  }

  void Publish(uint32_t fragment) {
    for (Trainer& trainer : trainers_) {
      Exchange& exchange = trainer.exchanges[fragment];
      exchange.waited = now_ - exchange.acknowledged;
      exchange.at = At::kPull;
      exchange.left = traffic_.pull_bytes;
      exchange.ready = now_ + traffic_.merge_s + traffic_.latency_s + traffic_.pull_start_s;
    }
  }

  /// Models what OverlappedSync does between two inner steps.
  void Step(Trainer& trainer) {
    FragmentSchedule& schedule = trainer.schedule;
    schedule.StepTaken();
    const double noise = static_cast<double>(random_()) / static_cast<double>(std::minstd_rand::max()) - 0.5;
    trainer.next_step += traffic_.step_s * (1 + kStepJitter * noise);
    std::vector<uint32_t> order;
    for (uint32_t fragment = 0; fragment < traffic_.fragments; ++fragment) {
      Exchange& exchange = trainer.exchanges[fragment];
      if (exchange.at == At::kAnswered && schedule.Usable(fragment)) {
        exchange.at = At::kNowhere;
        schedule.Used(fragment, static_cast<uint64_t>(exchange.waited / traffic_.step_s));
      }
      order.push_back(fragment);
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t fragment) { return schedule.DueIn(fragment); });
    for (const uint32_t fragment : order) {
      if (trainer.exchanges[fragment].at == At::kNowhere) {
        if (schedule.Due(fragment) && HasRoom(trainer)) Push(trainer, fragment);
      } else if (schedule.TooLate(fragment)) {
        schedule.Skipped(fragment);
      }
    }
  }

  bool HasRoom(const Trainer& trainer) const {
    return std::cmp_less(std::ranges::count(trainer.exchanges, At::kPush, &Exchange::at),
                         traffic_.max_in_flight);
  }

  void Push(Trainer& trainer, uint32_t fragment) {
    trainer.schedule.Pushed(fragment);
    trainer.exchanges[fragment] = {.at = At::kPush,
                                   .ready = now_ + 0.5 * traffic_.latency_s + traffic_.push_start_s,
                                   .left = traffic_.push_bytes};
    trainer.pushed[fragment].push_back(trainer.schedule.now());
  }

  const OverlappedTraffic& traffic_;
  double worker_rate_ = 0;
  double coordinator_rate_ = 0;
  std::vector<Trainer> trainers_;
  std::vector<double> push_rates_;
  std::vector<double> pull_rates_;
  std::minstd_rand random_;
  double now_ = 0;
};

}  // namespace

double ForecastSecondsBetweenPushes(const OverlappedTraffic& traffic) {
  const double bytes = std::max(traffic.push_bytes, traffic.pull_bytes) * traffic.fragments / kPayloadShare;
  const double on_the_link =
      std::max(bytes / traffic.worker_rate, bytes * traffic.workers / traffic.coordinator_rate);
  const double cycle = traffic.step_s * traffic.steps;
  const double cycles = std::max(1.0, on_the_link / cycle);
  if (cycles > kLongestSimulated) return on_the_link;
  double sum = 0;
  for (uint32_t seed = 1; seed <= kRuns; ++seed) {
    sum += Simulation(traffic, seed).SecondsBetweenPushes(cycles);
  }
  return std::max(cycle, sum / kRuns);
}

}  // namespace atl
