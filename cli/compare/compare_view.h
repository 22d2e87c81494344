#ifndef ATOLL_CLI_COMPARE_COMPARE_VIEW_H_
#define ATOLL_CLI_COMPARE_COMPARE_VIEW_H_

#include <ostream>
#include <string>
#include <vector>

#include "cli/compare/comparison.h"
#include "cli/compare/run_curve.h"
#include "cli/dashboard.h"
#include "nlohmann/json_fwd.hpp"

namespace atl {

/// What all outputs show.
struct CompareView {
  CompareAxis axis = CompareAxis::kTokens;
  ComparedLoss loss = ComparedLoss::kValidation;
  std::vector<RunCurve> curves = {};
  Comparison comparison = {};
};

/// "tokens", "steps", "rounds", "time", "bytes".
const char* AxisName(CompareAxis axis);

/// A plot with a curve for each run, and the table.
std::vector<std::string> RenderComparison(const CompareView& view, const DashboardStyle& style);

/// The table's numbers and the points of every run.
nlohmann::ordered_json CompareJson(const CompareView& view);

/// One line for each point: run,version,tokens,steps,rounds,seconds,bytes,loss (RFC 4180).
void WriteCompareCsv(const CompareView& view, std::ostream& out);

/// A page that needs no network: CompareJson in a chart.
std::string CompareHtml(const CompareView& view);

}  // namespace atl

#endif  // ATOLL_CLI_COMPARE_COMPARE_VIEW_H_
