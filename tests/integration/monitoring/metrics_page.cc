// metrics_page PAGE: the page with its tables made anew from the registries of our programs. Each stands
// between
// <!-- metrics of the coordinator --> and <!-- end --> (or: of the worker).
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/metrics/worker_metrics.h"
#include "common/file.h"
#include "monitoring/certificate_metrics.h"
#include "monitoring/program_metrics.h"
#include "server/metrics/launcher_metrics.h"
#include "server/metrics/port_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/status_metrics.h"

namespace atl {
namespace {

constexpr char kEnd[] = "<!-- end -->";

std::vector<MetricFamily> CoordinatorFamilies() {
  MetricsRegistry registry;
  const ServerMetrics server(&registry);
  const StatusMetrics status(&registry);
  const LauncherMetrics launcher(&registry);
  const PortMetrics ports(&registry, /*insecure_bind=*/false);
  const CertificateMetrics certificate(&registry);
  AddProgramMetrics(&registry, "atoll-coordinator");
  return registry.Families();
}

std::vector<MetricFamily> WorkerFamilies() {
  MetricsRegistry registry;
  const WorkerMetrics worker(&registry);
  const CertificateMetrics certificate(&registry);
  AddProgramMetrics(&registry, "atoll-worker");
  return registry.Families();
}

std::string TypeOf(const MetricFamily& family) {
  switch (family.type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      break;
  }
  return absl::StrFormat("histogram, %g to %g", family.buckets.front(), family.buckets.back());
}

std::string LabelsOf(const MetricFamily& family) {
  std::vector<std::string> labels;
  for (const auto& [label, values] : family.labels) {
    labels.push_back("`" + label + "`" + (values.empty() ? "" : ": " + absl::StrJoin(values, ", ")));
  }
  return absl::StrJoin(labels, "; ");
}

std::string Table(const std::vector<MetricFamily>& families) {
  std::string table = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const MetricFamily& family : families) {
    table += absl::StrFormat("| `%s` | %s | %s | %s |\n", family.name, TypeOf(family), LabelsOf(family),
                             family.help);
  }
  return table;
}

/// False when the page has no such place.
bool Replace(std::string& page, const std::string& of, const std::string& table) {
  const std::string begin = "<!-- metrics of the " + of + " -->\n";
  const size_t from = page.find(begin);
  if (from == std::string::npos) return false;
  const size_t to = page.find(kEnd, from);
  if (to == std::string::npos) return false;
  page.replace(from + begin.size(), to - from - begin.size(), table);
  return true;
}

int Main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: metrics_page docs/reference/metrics.md\n", stderr), 2;
  const auto read = ReadFile(argv[1]);
  if (!read.ok()) return std::fprintf(stderr, "%s\n", read.status().ToString().c_str()), 2;
  std::string page = *read;
  const bool replaced = Replace(page, "coordinator", Table(CoordinatorFamilies())) &&
                        Replace(page, "worker", Table(WorkerFamilies()));
  if (!replaced) return std::fputs("the page has no places for the tables\n", stderr), 2;
  std::fputs(page.c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) { return atl::Main(argc, argv); }
