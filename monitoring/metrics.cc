#include "monitoring/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace atl {

void Counter::Increment(double by) const {
  if (counter_ != nullptr && std::isfinite(by) && by > 0) counter_->Increment(by);
}

void Gauge::Set(double value) const {
  if (gauge_ != nullptr) gauge_->Set(value);
}

void Histogram::Observe(double value) const {
  if (histogram_ != nullptr && !std::isnan(value)) histogram_->Observe(value);
}

std::vector<double> ShortDurationBuckets() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

std::vector<double> DurationBuckets() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
}

std::vector<double> TransferBuckets() {
  return {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600};
}

std::vector<double> RoundBuckets() {
  return {0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400};
}

namespace {

MetricFamily FamilyOf(MetricType type, const std::string& name, const std::string& help,
                      const MetricLabels& labels) {
  MetricFamily family{.name = name, .type = type, .help = help, .labels = {}, .buckets = {}};
  for (const auto& [label, value] : labels) family.labels[label].insert(value);
  return family;
}

}  // namespace

/// Refreshes, then collects.
struct MetricsRegistry::State {
  std::vector<prometheus::MetricFamily> Collect() const {
    {
      MutexLock lock(&refresh_mutex);
      for (const std::function<void()>& refresh : refreshes) refresh();
    }
    return registry.Collect();
  }

  void Note(MetricFamily family, bool open) {
    MutexLock lock(&families_mutex);
    const auto known = std::ranges::find(families, family.name, &MetricFamily::name);
    if (known == families.end()) {
      if (open) open_families.insert(family.name);
      families.push_back(std::move(family));
      return;
    }
    if (open_families.contains(family.name)) return;  // its values are not bounded
    for (auto& [label, values] : family.labels) known->labels[label].merge(values);
  }

  mutable prometheus::Registry registry;
  mutable Mutex families_mutex;
  std::vector<MetricFamily> families ABSL_GUARDED_BY(families_mutex);
  std::set<std::string> open_families ABSL_GUARDED_BY(families_mutex);
  mutable Mutex refresh_mutex;  // held during callbacks, so that scrapes run one at a time
  std::vector<std::function<void()>> refreshes ABSL_GUARDED_BY(refresh_mutex);
};

MetricsRegistry::MetricsRegistry() : state_(std::make_shared<State>()) {}
MetricsRegistry::~MetricsRegistry() { StopRefreshing(); }

void MetricsRegistry::Declare(MetricType type, const std::string& name, const std::string& help,
                              const std::vector<std::string>& labels) {
  MetricFamily family{.name = name, .type = type, .help = help, .labels = {}, .buckets = {}};
  for (const std::string& label : labels) family.labels[label];
  state_->Note(std::move(family), /*open=*/true);
  // The first registration of a name sets its help text.
  switch (type) {
    case MetricType::kCounter:
      prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
      break;
    case MetricType::kGauge:
      prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
      break;
    case MetricType::kHistogram:
      prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
      break;
  }
}

Counter MetricsRegistry::AddCounter(const std::string& name, const std::string& help,
                                    const MetricLabels& labels) {
  state_->Note(FamilyOf(MetricType::kCounter, name, help, labels), /*open=*/false);
  return Counter(&prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry).Add(labels));
}

Gauge MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                                const MetricLabels& labels) {
  state_->Note(FamilyOf(MetricType::kGauge, name, help, labels), /*open=*/false);
  return Gauge(&prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add(labels));
}

Histogram MetricsRegistry::AddHistogram(const std::string& name, const std::string& help,
                                        const std::vector<double>& buckets, const MetricLabels& labels) {
  MetricFamily family = FamilyOf(MetricType::kHistogram, name, help, labels);
  family.buckets = buckets;
  state_->Note(std::move(family), /*open=*/false);
  return Histogram(
      &prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry).Add(labels, buckets));
}

// Registering a name again returns the existing family and ignores the help text.

void MetricsRegistry::RemoveGauge(const std::string& name, const Gauge& gauge) {
  prometheus::BuildGauge().Name(name).Register(state_->registry).Remove(gauge.gauge_);
}

void MetricsRegistry::RemoveCounter(const std::string& name, const Counter& counter) {
  prometheus::BuildCounter().Name(name).Register(state_->registry).Remove(counter.counter_);
}

std::vector<MetricFamily> MetricsRegistry::Families() const {
  MutexLock lock(&state_->families_mutex);
  return state_->families;
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

MirroredCounter::MirroredCounter(MetricsRegistry* registry, std::string name, std::string help,
                                 MetricLabels labels)
    : registry_(registry),
      name_(std::move(name)),
      help_(std::move(help)),
      labels_(std::move(labels)),
      counter_(registry->AddCounter(name_, help_, labels_)) {}

void MirroredCounter::Follow(double total) {
  if (registry_ == nullptr || !std::isfinite(total)) return;
  if (total < total_) {
    registry_->RemoveCounter(name_, counter_);
    counter_ = registry_->AddCounter(name_, help_, labels_);
    total_ = 0;
  }
  counter_.Increment(total - total_);
  total_ = std::max(total_, total);
}

void MirroredCounter::Remove() {
  if (registry_ != nullptr) registry_->RemoveCounter(name_, counter_);
  registry_ = nullptr;
}

}  // namespace atl
