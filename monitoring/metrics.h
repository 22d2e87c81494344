#ifndef ATOLL_MONITORING_METRICS_H_
#define ATOLL_MONITORING_METRICS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// Metrics in Prometheus's sense, without its headers. Names and labels are literals of ours and follow its
// conventions (base units as suffix, counters end in _total; promtool checks them in a test).

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace atl {

using MetricLabels = std::map<std::string, std::string>;

/// One series. A handle: copied freely, valid while the registry lives and the series was not removed.
/// Thread-safe. One made by the default constructor counts nothing.
class Counter {
 public:
  Counter() = default;
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  /// Values below 0 and those that are not finite are ignored.
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

// Upper bounds in seconds, about three a decade.
/// What ought to take no time: 0.5 ms to 10 s.
std::vector<double> ShortDurationBuckets();
/// Work on tensors: 1 ms to 10 minutes.
std::vector<double> DurationBuckets();
/// Transfers over thin links: 10 ms to an hour.
std::vector<double> TransferBuckets();
/// Rounds: 0.5 s to 4 hours.
std::vector<double> RoundBuckets();

enum class MetricType { kCounter, kGauge, kHistogram };

/// What is known of a name before there is a series of it.
struct MetricFamily {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string help;
  /// The values that a label can have; none: it is open (a worker's name, a fragment's number).
  std::map<std::string, std::set<std::string>> labels;
  std::vector<double> buckets;  // of a histogram
};

/// What a program counts, and what is shown of it. Thread-safe. Series are made once and kept by those who
/// count; each name has one help text and one type. Outlives the handles' users.
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
  /// There will be series of this name, with these labels, whose values are open. Before the first of them,
  /// which need no help text then.
  void Declare(MetricType type, const std::string& name, const std::string& help,
               const std::vector<std::string>& labels);
  /// The series disappears; its handles must not be used any more.
  void RemoveGauge(const std::string& name, const Gauge& gauge);
  void RemoveCounter(const std::string& name, const Counter& counter);

  /// All names that were declared or added, in that order: what docs/reference/metrics.md is made of.
  std::vector<MetricFamily> Families() const;

  /// Called before each scrape, on the scraper's thread, one scrape at a time: to set gauges of what is asked
  /// for rather than counted. It must add or remove series of names that were added before only.
  void BeforeScrape(std::function<void()> refresh);
  /// The last refresh has returned, and none will be called again: what they use may go.
  void StopRefreshing();

  /// All series in the text format that Prometheus scrapes.
  std::string Text() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

/// A counter of what somebody else counts, who tells the whole each time. Not thread-safe. A copy is the same
/// series.
class MirroredCounter {
 public:
  MirroredCounter() = default;
  /// `registry` outlives it.
  MirroredCounter(MetricsRegistry* registry, std::string name, std::string help, MetricLabels labels = {});

  /// A total below the last one: who counts began anew, and so does the series.
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
