#include "protos/config/check_trust.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model_shape.h"
#include "core/payload_stats.h"
#include "protos/config/model_options.h"

namespace atl {
namespace {

constexpr double kLargestHalf = 65504;

void CheckOffenders(const v1::RunConfig& config, std::vector<ConfigProblem>* problems) {
  const v1::OffendersSection& offenders = config.offenders();
  if (offenders.ban_after() == 0) return;
  if (offenders.ban_after() > offenders.within()) {
    problems->push_back({"offenders.ban_after",
                         absl::StrCat(offenders.ban_after(), " is above offenders.within, which is ",
                                      offenders.within(), ": that number is never reached"),
                         0});
  }
  const v1::MergeMethod method = config.merge().method();
  const bool plain = method == v1::MERGE_METHOD_MEAN || method == v1::MERGE_METHOD_RDA;
  if (plain && !config.merge().norm_guard()) {
    problems->push_back({"offenders.ban_after",
                         "with this merge, one large contribution makes honest ones look wrong: set "
                         "merge.norm_guard: true, or merge.method to centered_clip, trimmed_mean or median",
                         0});
  }
  if (config.round().mode() == v1::ROUND_MODE_FREE) {
    problems->push_back({"offenders.ban_after",
                         "with round.mode async each round has one contribution, so there is nothing to "
                         "compare it with: allowed: 0",
                         0});
  }
}

/// Noise of this deviation must leave pushes that a coordinator takes.
void CheckNoise(const v1::RunConfig& config, std::vector<ConfigProblem>* problems) {
  const double deviation = config.privacy().noise_multiplier() * config.privacy().clip_norm();
  const auto add = [&](const std::string& text) {
    problems->push_back(
        {"privacy.noise_multiplier",
         absl::StrCat(config.privacy().noise_multiplier(), " adds noise of standard deviation ", deviation,
                      " (times privacy.clip_norm) to each value, ", text,
                      ": every push would be refused; lower privacy.clip_norm to about the value of "
                      "`worker/norm` without privacy"),
         0});
  };
  if (config.codec().push() == v1::CODEC_FP16 && deviation >= kLargestHalf) {
    return add("above 65504, the largest number of codec.push fp16");
  }
  const ModelOptions model = ModelOptionsOf(config.model());
  const auto shape = ShapeOf(model);
  if (deviation == 0 || shape->FindProblem().has_value()) return;
  const auto manifest = shape->MakeManifest();
  // With an external model no more is known than what the configuration expects; 0: nothing.
  const uint64_t elements = manifest.has_value() ? manifest->elements() : model.external()->parameters;
  const double norm =
      deviation * std::sqrt(static_cast<double>(elements) / std::max(config.sync().fragments(), 1U));
  if (norm > kMaxContributionNorm)
    add(absl::StrCat("and norm ", norm, " to a push, above the limit of ", kMaxContributionNorm));
}

void CheckPrivacy(const v1::RunConfig& config, std::vector<ConfigProblem>* problems) {
  const v1::PrivacySection& privacy = config.privacy();
  if (privacy.noise_multiplier() > 0 && privacy.clip_norm() == 0) {
    problems->push_back(
        {"privacy.clip_norm",
         "0 does not bound the pseudo-gradient, so noise cannot hide it: set the norm to clip to, "
         "about the value of `worker/norm` without privacy",
         0});
  }
  if (privacy.noise_multiplier() == 0) return;
  CheckNoise(config, problems);
  if (config.data().mode() == v1::DATA_MODE_LOCAL && config.evaluation().by() == v1::EVALUATED_BY_WORKER) {
    problems->push_back(
        {"evaluation.by",
         "'worker' lets a worker report the loss on its own held-out text, without noise: with privacy "
         "and data.mode local, allowed: evaluator (with text that is not secret)",
         0});
  }
}

}  // namespace

std::vector<ConfigProblem> CheckTrust(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems;
  CheckOffenders(config, &problems);
  CheckPrivacy(config, &problems);
  return problems;
}

}  // namespace atl
