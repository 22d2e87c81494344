#include "protos/config/check_rounds.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

class Rounds {
 public:
  explicit Rounds(const v1::RunConfig& config) : config_(config), workers_(config.run().workers()) {
    free_ = config.round().mode() == v1::ROUND_MODE_FREE;
    delayed_ = config.outer().optimizer() == v1::OUTER_OPTIMIZER_DELAYED_NESTEROV;
  }

  std::vector<ConfigProblem> Run() {
    Merge();
    Outer();
    if (free_) FreeMode();
    return std::move(problems_);
  }

 private:
  void Add(const std::string& path, const std::string& text) { problems_.push_back({path, text, 0}); }

  static std::string MethodName(v1::MergeMethod method) {
    return Quoted(Spelling(v1::MergeMethod_descriptor()->FindValueByNumber(method)));
  }

  void Merge() {
    const v1::MergeMethod method = config_.merge().method();
    const bool by_coordinate = method == v1::MERGE_METHOD_TRIMMED_MEAN || method == v1::MERGE_METHOD_MEDIAN;
    if (!by_coordinate && method != v1::MERGE_METHOD_CENTERED_CLIP) return;
    if (workers_ < kFewestForRobust) {
      return Add(
          "merge.method",
          absl::StrCat(MethodName(method), " needs at least ", kFewestForRobust,
                       " workers, so that a majority is right when one is wrong; run.workers is ", workers_));
    }
    if (free_) {
      return Add("merge.method", absl::StrCat(MethodName(method),
                                              " compares the contributions of a round; with round.mode async "
                                              "each round has only one: use mean or rda"));
    }
    if (method == v1::MERGE_METHOD_TRIMMED_MEAN) Trim();
    if (by_coordinate && config_.round().staleness_limit() > 0) {
      Add("round.staleness_limit", absl::StrCat("late contributions need a lower weight, but merge.method ",
                                                MethodName(method), " has no weights; 0 rejects them"));
    }
  }

  void Trim() {
    const double trim = config_.merge().trim();
    if (std::floor(trim * workers_ + 1e-9) >= 1) return;
    Add("merge.trim",
        absl::StrCat(NumberText(trim), " of ", workers_, " workers drops no contribution; allowed: at least ",
                     NumberText(std::ceil(100.0 / workers_) / 100)));
  }

  void Outer() {
    if (!delayed_) return;
    const uint32_t delay = config_.outer().delay() == 0 ? workers_ : config_.outer().delay();
    const double spread = config_.outer().spread();
    if (spread * delay > 1 + 1e-9) {
      Add("outer.spread",
          absl::StrCat(NumberText(spread), " is above 1 / ", delay, ", one over the versions between two ",
                       "updates of the momentum (outer.delay): more than all of it would be applied"));
    }
    if (!free_ && delay > 1) {
      Add("outer.optimizer",
          absl::StrCat("'delayed_nesterov' takes 1 / ", delay,
                       " of each version's step (outer.delay), which is for round.mode async; "
                       "with barrier use nesterov"));
    }
  }

  void FreeMode() {
    const v1::OuterOptimizer optimizer = config_.outer().optimizer();
    if (!delayed_ && optimizer != v1::OUTER_OPTIMIZER_SGD) {
      const auto* value = v1::OuterOptimizer_descriptor()->FindValueByNumber(optimizer);
      Add("outer.optimizer",
          absl::StrCat(Quoted(Spelling(value)), " diverges when round.mode is async, because every ",
                       "contribution takes a full step with momentum; use delayed_nesterov or sgd"));
    }
    if (config_.round().minimum() > 1) {
      Add("round.minimum",
          absl::StrCat(config_.round().minimum(), " contributions per round are impossible when ",
                       "round.mode is async: each one makes a version; allowed: 1"));
    }
    if (config_.round().staleness_limit() + 1 < workers_) {
      Add("round.staleness_limit",
          absl::StrCat(config_.round().staleness_limit(),
                       " would reject most contributions when round.mode is async: with ", workers_,
                       " equally fast workers (run.workers), each contribution is ", workers_ - 1,
                       " versions old when it arrives; allowed: at least that"));
    }
  }

  const v1::RunConfig& config_;
  const uint32_t workers_;
  bool free_ = false;
  bool delayed_ = false;
  std::vector<ConfigProblem> problems_;
};

}  // namespace

std::vector<ConfigProblem> CheckRounds(const v1::RunConfig& config) { return Rounds(config).Run(); }

}  // namespace atl
