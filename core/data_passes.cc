#include "core/data_passes.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"

namespace atl {
namespace {

constexpr double kMostPasses = 4;

double PassesOver(const RunOptions& run, const TextShare& text) {
  const double readers = run.data.mode == DataMode::kLocal ? run.workers : 1;
  return static_cast<double>(run.total_tokens()) * text.share / (readers * static_cast<double>(text.tokens));
}

const TextShare& MostRead(const RunOptions& run, std::span<const TextShare> texts) {
  return *std::ranges::max_element(texts, {}, [&](const TextShare& text) { return PassesOver(run, text); });
}

}  // namespace

double PassesOverData(const RunOptions& run, std::span<const TextShare> texts) {
  return PassesOver(run, MostRead(run, texts));
}

std::string PassesWarning(const RunOptions& run, std::span<const TextShare> texts) {
  const TextShare& most = MostRead(run, texts);
  const double passes = PassesOver(run, most);
  if (passes <= kMostPasses) return "";
  const auto planned = static_cast<double>(run.total_tokens()) * most.share;
  const std::string text = most.name.empty() ? "its training text" : most.name + " of its mixture";
  return absl::StrFormat(
      "the run reads %s %.3g times (%s tokens planned, %s in the text): after about 4 passes the validation "
      "loss can rise again; use more text%s or fewer run.rounds",
      text, passes, HumanCount(planned), HumanCount(static_cast<double>(most.tokens)),
      most.name.empty() ? "" : ", a lower weight");
}

}  // namespace atl
