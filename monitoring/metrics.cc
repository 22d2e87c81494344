#include "monitoring/metrics.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "atoll/version.h"
#include "common/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace atoll {

void Counter::Increment(double by) const {
  if (counter_ != nullptr && std::isfinite(by) && by > 0) counter_->Increment(by);
}

void Gauge::Set(double value) const {
  if (gauge_ != nullptr) gauge_->Set(value);
}

void Histogram::Observe(double value) const {
  if (histogram_ != nullptr && !std::isnan(value)) histogram_->Observe(value);
}

std::vector<double> DurationBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

/// Refreshes, then collects.
struct MetricsRegistry::State final : prometheus::Collectable {
  std::vector<prometheus::MetricFamily> Collect() const override {
    {
      MutexLock lock(&refresh_mutex);
      for (const std::function<void()>& refresh : refreshes) refresh();
    }
    return registry.Collect();
  }

  mutable prometheus::Registry registry;
  mutable Mutex refresh_mutex;  // the one lock under which is called out: it makes scrapes one at a time
  std::vector<std::function<void()>> refreshes ABSL_GUARDED_BY(refresh_mutex);
};

MetricsRegistry::MetricsRegistry() : state_(std::make_shared<State>()) {}
MetricsRegistry::~MetricsRegistry() { StopRefreshing(); }

Counter MetricsRegistry::AddCounter(const std::string& name, const std::string& help,
                                    const MetricLabels& labels) {
  return Counter(&prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry).Add(labels));
}

Gauge MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                                const MetricLabels& labels) {
  return Gauge(&prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add(labels));
}

Histogram MetricsRegistry::AddHistogram(const std::string& name, const std::string& help,
                                        const std::vector<double>& buckets, const MetricLabels& labels) {
  return Histogram(
      &prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry).Add(labels, buckets));
}

void MetricsRegistry::RemoveGauge(const std::string& name, const Gauge& gauge) {
  // Registering a name again gives the family that is there, whatever the help.
  prometheus::BuildGauge().Name(name).Register(state_->registry).Remove(gauge.gauge_);
}

void MetricsRegistry::BeforeScrape(std::function<void()> refresh) {
  MutexLock lock(&state_->refresh_mutex);
  state_->refreshes.push_back(std::move(refresh));
}

void MetricsRegistry::StopRefreshing() {
  MutexLock lock(&state_->refresh_mutex);
  state_->refreshes.clear();
}

std::string MetricsRegistry::Text() const {
  return prometheus::TextSerializer().Serialize(state_->Collect());
}

std::shared_ptr<prometheus::Collectable> MetricsRegistry::collectable() const { return state_; }

void AddBuildInfo(MetricsRegistry* registry, std::string_view program) {
  registry
      ->AddGauge("atoll_build_info", "Which program this is; always 1.",
                 {{"program", std::string(program)},
                  {"version", std::string(kVersion)},
                  {"revision", std::string(kGitRevision)}})
      .Set(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  registry->AddGauge("atoll_start_time_seconds", "When the program started, in seconds since 1970-01-01 UTC.")
      .Set(std::chrono::duration<double>(now).count());
}

}  // namespace atoll
