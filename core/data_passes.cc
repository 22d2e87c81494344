#include "core/data_passes.h"

#include "absl/strings/str_format.h"
#include "common/human.h"

namespace atl {
namespace {

constexpr double kMostPasses = 4;

}  // namespace

double PassesOverData(const RunOptions& run, uint64_t train_tokens) {
  const double readers = run.data.mode == DataMode::kLocal ? run.workers : 1;
  return static_cast<double>(run.total_tokens()) / (readers * static_cast<double>(train_tokens));
}

std::string PassesWarning(const RunOptions& run, uint64_t train_tokens) {
  const double passes = PassesOverData(run, train_tokens);
  if (passes <= kMostPasses) return "";
  return absl::StrFormat(
      "the run reads its training text %.3g times (%s tokens planned, %s in the text): after about 4 passes "
      "the "
      "validation loss can rise again; use more text or fewer run.rounds",
      passes, HumanCount(static_cast<double>(run.total_tokens())),
      HumanCount(static_cast<double>(train_tokens)));
}

}  // namespace atl
