#include "cli/compare/compare_view.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/loss_text.h"
#include "cli/plot.h"
#include "cli/text.h"
#include "common/human.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr std::array kColours = {"36", "33", "35", "32", "34", "31"};
constexpr int kLeastPlotHeight = 12;
constexpr int kMostPlotHeight = 24;
constexpr char kUnknown[] = "-";

std::string Tokens(double tokens) { return HumanCount(tokens); }

std::string XText(CompareAxis axis, double x) {
  switch (axis) {
    case CompareAxis::kTime:
      return HumanDuration(Seconds(x));
    case CompareAxis::kBytes:
      return HumanBytes(static_cast<uint64_t>(x));
    case CompareAxis::kTokens:
    case CompareAxis::kSteps:
    case CompareAxis::kRounds:
      break;
  }
  return HumanCount(x);
}

std::string LossCell(const std::optional<double>& loss) {
  return loss ? LossNumber(*loss, 0, 4) : std::string(kUnknown);
}

std::vector<std::string> HeadRow(const Comparison& comparison) {
  return {"run",
          "last loss",
          "best loss",
          comparison.equal_tokens > 0 ? "loss at " + Tokens(comparison.equal_tokens) : "loss at equal tokens",
          comparison.target ? "tokens to " + LossNumber(*comparison.target, 0, 4) : "tokens to equal loss",
          "tokens/s",
          "bytes per token"};
}

std::vector<std::string> RowOf(const RunCurve& curve, const ComparedRun& run) {
  const auto with_tokens = [](const std::optional<CurvePoint>& point) {
    if (!point) return std::string(kUnknown);
    return absl::StrFormat("%s at %s", LossNumber(point->loss, 0, 4), Tokens(point->tokens));
  };
  return {Printable(curve.name),
          with_tokens(run.last),
          with_tokens(run.best),
          LossCell(run.loss_at_equal_tokens),
          run.tokens_to_target ? Tokens(*run.tokens_to_target) : kUnknown,
          curve.tokens_per_second > 0 ? HumanCount(curve.tokens_per_second) : kUnknown,
          curve.bytes_per_token > 0 ? absl::StrFormat("%.3g", curve.bytes_per_token) : kUnknown};
}

/// The first column at the left, the others at the right.
std::vector<std::string> Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Columns(row[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i == 0 ? row[i] + space : space + row[i]);
    }
    lines.push_back(line);
  }
  return lines;
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

nlohmann::ordered_json OrNull(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json PointJson(const CurvePoint& point) {
  return {{"version", point.version}, {"tokens", point.tokens},   {"steps", point.steps},
          {"rounds", point.rounds},   {"seconds", point.seconds}, {"bytes", point.bytes},
          {"loss", point.loss}};
}

const char* LossName(ComparedLoss loss) {
  return loss == ComparedLoss::kValidation ? "validation" : "training";
}

}  // namespace

const char* AxisName(CompareAxis axis) {
  switch (axis) {
    case CompareAxis::kTokens:
      return "tokens";
    case CompareAxis::kSteps:
      return "steps";
    case CompareAxis::kRounds:
      return "rounds";
    case CompareAxis::kTime:
      return "time";
    case CompareAxis::kBytes:
      return "bytes";
  }
  return "tokens";
}

std::vector<std::string> RenderComparison(const CompareView& view, const DashboardStyle& style) {
  std::vector<Curve> curves;
  for (size_t i = 0; i < view.curves.size(); ++i) {
    Curve& curve = curves.emplace_back(
        Curve{.name = Printable(view.curves[i].name), .colour = kColours[i % kColours.size()], .points = {}});
    for (const CurvePoint& point : view.curves[i].points) {
      curve.points.emplace_back(XOf(point, view.axis), point.loss);
    }
  }
  const auto range = [&](double low, double high) {
    return absl::StrFormat("%s %s to %s", AxisName(view.axis), XText(view.axis, low), XText(view.axis, high));
  };
  const int height =
      std::clamp(style.height - static_cast<int>(view.curves.size()) - 4, kLeastPlotHeight, kMostPlotHeight);
  std::vector<std::string> lines = {absl::StrFormat(" %s loss", LossName(view.loss))};
  for (std::string& line : PlotCurves(curves, style.width, height, style.colour, range))
    lines.push_back(std::move(line));
  lines.emplace_back();
  std::vector<std::vector<std::string>> rows = {HeadRow(view.comparison)};
  for (size_t i = 0; i < view.curves.size(); ++i)
    rows.push_back(RowOf(view.curves[i], view.comparison.runs[i]));
  for (std::string& line : Table(rows)) lines.push_back(std::move(line));
  return lines;
}

nlohmann::ordered_json CompareJson(const CompareView& view) {
  nlohmann::ordered_json json = {{"loss", LossName(view.loss)},
                                 {"axis", AxisName(view.axis)},
                                 {"equal_tokens", view.comparison.equal_tokens},
                                 {"target_loss", OrNull(view.comparison.target)},
                                 {"runs", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < view.curves.size(); ++i) {
    const RunCurve& curve = view.curves[i];
    const ComparedRun& run = view.comparison.runs[i];
    nlohmann::ordered_json one = {{"name", curve.name}, {"source", curve.source}};
    one["last"] = run.last ? PointJson(*run.last) : nlohmann::ordered_json(nullptr);
    one["best"] = run.best ? PointJson(*run.best) : nlohmann::ordered_json(nullptr);
    one["loss_at_equal_tokens"] = OrNull(run.loss_at_equal_tokens);
    one["tokens_to_target"] = OrNull(run.tokens_to_target);
    one["tokens_per_second"] = curve.tokens_per_second;
    one["bytes_per_token"] = curve.bytes_per_token;
    one["points"] = nlohmann::ordered_json::array();
    for (const CurvePoint& point : curve.points) one["points"].push_back(PointJson(point));
    json["runs"].push_back(std::move(one));
  }
  return json;
}

void WriteCompareCsv(const CompareView& view, std::ostream& out) {
  out << "run,version,tokens,steps,rounds,seconds,bytes,loss\n";
  for (const RunCurve& curve : view.curves) {
    for (const CurvePoint& point : curve.points) {
      out << absl::StrFormat("%s,%d,%.17g,%.17g,%.17g,%.9f,%.17g,%.17g\n", CsvField(curve.name),
                             point.version, point.tokens, point.steps, point.rounds, point.seconds,
                             point.bytes, point.loss);
    }
  }
}

}  // namespace atl
