#ifndef ATOLL_MONITORING_METRICS_H_
#define ATOLL_MONITORING_METRICS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Prometheus metrics, without the headers of its client library. Names and labels are literals and follow its
// conventions (base units as suffix, counters end in _total; a test checks them with promtool).

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace atl {

using MetricLabels = std::map<std::string, std::string>;

/// A handle of one series. Freely copyable; valid while the registry lives and the series is not removed.
/// Thread-safe. A default-constructed handle counts nothing.
class Counter {
 public:
  Counter() = default;
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  /// Ignores negative values and values that are not finite.
  void Increment(double by = 1) const;

 private:
  friend class MetricsRegistry;
  prometheus::Counter* counter_ = nullptr;
};

class Gauge {
 public:
  Gauge() = default;
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value) const;

 private:
  friend class MetricsRegistry;
  prometheus::Gauge* gauge_ = nullptr;
};

class Histogram {
 public:
  Histogram() = default;
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* histogram_ = nullptr;
};

// Upper bounds in seconds, about three per decade.
/// Short operations: 0.5 ms to 10 s.
std::vector<double> ShortDurationBuckets();
/// Work on tensors: 1 ms to 10 minutes.
std::vector<double> DurationBuckets();
/// Transfers over slow links: 10 ms to an hour.
std::vector<double> TransferBuckets();
/// Rounds: 0.5 s to 4 hours.
std::vector<double> RoundBuckets();

enum class MetricType { kCounter, kGauge, kHistogram };

/// Describes a name before its first series exists.
struct MetricFamily {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string help;
  /// The values of a label; empty: unbounded (a worker's name, a fragment's number).
  std::map<std::string, std::set<std::string>> labels;
  std::vector<double> buckets;  // of a histogram
};

/// The metrics of a program. Thread-safe. Code that counts creates its series once and keeps the handle. Each
/// name has one help text and one type. The registry outlives all users of handles.
class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  Counter AddCounter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Histogram AddHistogram(const std::string& name, const std::string& help, const std::vector<double>& buckets,
                         const MetricLabels& labels = {});
  /// Declares a name whose labels have unbounded values. Call it before the first series of this name; those
  /// need no help text.
  void Declare(MetricType type, const std::string& name, const std::string& help,
               const std::vector<std::string>& labels);
  /// Removes the series. Its handles must not be used afterwards.
  void RemoveGauge(const std::string& name, const Gauge& gauge);
  void RemoveCounter(const std::string& name, const Counter& counter);

  /// All names in the order of their declaration; docs/reference/metrics.md is generated from them.
  std::vector<MetricFamily> Families() const;

  /// Called before each scrape, on the scraper's thread, one scrape at a time. Sets gauges whose values are
  /// read rather than counted. It may add or remove series only of names that exist already.
  void BeforeScrape(std::function<void()> refresh);
  /// Waits for the current refresh and prevents further ones. Afterwards, the objects that refreshes use may
  /// be destroyed.
  void StopRefreshing();

  /// All series in the text format that Prometheus scrapes.
  std::string Text() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

/// Mirrors a counter that is kept elsewhere and reported as a total. Not thread-safe. A copy refers to the
/// same series.
class MirroredCounter {
 public:
  MirroredCounter() = default;
  /// `registry` outlives it.
  MirroredCounter(MetricsRegistry* registry, std::string name, std::string help, MetricLabels labels = {});

  /// A total below the previous one means that the source was reset; the series is reset too.
  void Follow(double total);
  void Remove();

 private:
  MetricsRegistry* registry_ = nullptr;
  std::string name_;
  std::string help_;
  MetricLabels labels_;
  Counter counter_;
  double total_ = 0;
};

}  // namespace atl

#endif  // ATOLL_MONITORING_METRICS_H_
