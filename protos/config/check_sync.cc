#include "protos/config/check_sync.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/fragment_plan.h"
#include "core/model_shape.h"
#include "protos/config/model_options.h"

namespace atl {
namespace {

void CheckFragments(const v1::RunConfig& config, std::vector<ConfigProblem>* problems) {
  const v1::SyncSection& sync = config.sync();
  const auto shape = ShapeOf(ModelOptionsOf(config.model()));
  const std::optional<Manifest> manifest = shape->MakeManifest();
  if (!manifest) return;  // checked when a worker brings it
  if (sync.pattern() == v1::FRAGMENT_PATTERN_STRIDED && sync.fragments() > shape->blocks()) {
    problems->push_back({"sync.fragments",
                         absl::StrCat(sync.fragments(), " strided fragments need a transformer block each; ",
                                      shape->section(), ".layers is ", shape->blocks()),
                         0});
    return;
  }
  const size_t tensors = manifest->tensors.size();
  if (sync.fragments() > tensors) {
    problems->push_back(
        {"sync.fragments",
         absl::StrCat(sync.fragments(), " is above the number of the model's tensors, which is ", tensors,
                      ": a fragment holds whole tensors"),
         0});
  }
}

void CheckOverlap(const v1::RunConfig& config, std::vector<ConfigProblem>* problems) {
  const v1::SyncSection& sync = config.sync();
  const uint32_t steps = config.inner().steps();
  if (sync.delay_steps() >= steps) {
    problems->push_back({"sync.delay_steps",
                         absl::StrCat(sync.delay_steps(), " is not below inner.steps, which is ", steps,
                                      ": an answer must be applied before the fragment is pushed again"),
                         0});
  }
  if (sync.fragments() > steps) {
    problems->push_back({"sync.fragments",
                         absl::StrCat(sync.fragments(), " is above inner.steps, which is ", steps,
                                      ": every fragment is pushed at a different step"),
                         0});
  }
  constexpr double kDefaultAlpha = 0.5;
  if (sync.answer() == v1::ANSWER_USE_REBASE && sync.alpha() != kDefaultAlpha) {
    problems->push_back(
        {"sync.alpha", "has an effect only with 'answer: blend'; set that, or remove alpha", 0});
  }
  if (config.round().mode() == v1::ROUND_MODE_FREE) {
    problems->push_back({"sync.mode",
                         "'overlapped' needs workers in step, and round.mode async does not keep them in "
                         "step; use round.mode barrier",
                         0});
  }
}

}  // namespace

std::vector<ConfigProblem> CheckSync(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems;
  CheckFragments(config, &problems);
  if (config.sync().mode() == v1::SYNC_MODE_OVERLAPPED) CheckOverlap(config, &problems);
  return problems;
}

}  // namespace atl
