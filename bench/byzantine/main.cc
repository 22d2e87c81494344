#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "tests/byzantine/experiment.h"

// Every attack against every merge, with one and two attackers of eight: final loss as a percentage above the
// clean run of the plain mean, and whom the rule bans. Prints Markdown.

namespace atl::byzantine {
namespace {

struct Merge {
  const char* name;
  MergeOptions options;
};

const Merge kMerges[] = {
    {"mean", {}},
    {"mean + guard", {.norm_guard = true}},
    {"rda", {.method = MergeMethod::kRda}},
    {"trimmed mean", {.method = MergeMethod::kTrimmedMean, .trim = 0.25}},
    {"median", {.method = MergeMethod::kMedian}},
    {"centered clip", {.method = MergeMethod::kCenteredClip, .clip_by_distance = true}},
};

std::string Cell(const Outcome& outcome, double clean) {
  if (!std::isfinite(outcome.loss) || outcome.loss > 3 * clean) return "diverges";
  return absl::StrFormat("%+.1f %%", 100 * (outcome.loss / clean - 1));
}

class Table {
 public:
  Table() {
    std::string folder = "/tmp/atoll-byzantine-XXXXXX";
    if (::mkdtemp(folder.data()) != nullptr) folder_ = folder;
  }
  ~Table() { RemoveAll(folder_).IgnoreError(); }

  Outcome Do(const Experiment& experiment) {
    const std::string folder = absl::StrFormat("%s/%d", folder_, ++runs_);
    const auto outcome = Run(experiment, folder);
    RemoveAll(folder).IgnoreError();
    if (!outcome.ok()) {
      std::fprintf(stderr, "%s\n", outcome.status().ToString().c_str());
      Outcome none;
      none.loss = std::nan("");
      return none;
    }
    return *outcome;
  }

  void Losses() {
    const double clean = Do({}).loss;
    std::printf("Clean run of the mean: %.4f nats per character.\n\n| attack | of 8 |", clean);
    for (const Merge& merge : kMerges) std::printf(" %s |", merge.name);
    std::printf("\n|---|---|");
    for (size_t i = 0; i < std::size(kMerges); ++i) std::printf("---|");
    std::printf("\n");
    Row("none", Attack::kNone, 0, clean);
    for (const Attack attack : kAttacks) {
      for (const uint32_t f : {1U, 2U}) Row(AttackName(attack), attack, f, clean);
    }
  }

  void Bans() {
    std::printf(
        "\n| attack by 2 of 8, `ban_after: 3` | mean + guard | centered clip | median "
        "|\n|---|---|---|---|\n");
    for (const Attack attack :
         {Attack::kNone, Attack::kSignFlip, Attack::kScaled, Attack::kScaledFlip, Attack::kNoise,
          Attack::kQuietNoise, Attack::kStale, Attack::kInflated, Attack::kNan, Attack::kInfinity}) {
      std::printf("| %s |", AttackName(attack).c_str());
      for (const size_t merge : {1, 5, 4}) std::printf(" %s |", Banned(attack, kMerges[merge]).c_str());
      std::printf("\n");
      std::fflush(stdout);
    }
  }

 private:
  void Row(const std::string& name, Attack attack, uint32_t f, double clean) {
    std::printf("| %s | %d |", name.c_str(), f);
    for (const Merge& merge : kMerges) {
      std::printf(" %s |", Cell(Do({.merge = merge.options, .attack = attack, .f = f}), clean).c_str());
      std::fflush(stdout);
    }
    std::printf("\n");
  }

  std::string Banned(Attack attack, const Merge& merge) {
    const uint32_t f = attack == Attack::kNone ? 0 : 2;
    const Outcome outcome =
        Do({.merge = merge.options, .offenders = {.ban_after = 3}, .attack = attack, .f = f});
    uint32_t attackers = 0;
    uint64_t last = 0;
    for (uint32_t i = kWorkers - f; i < kWorkers; ++i) {
      const auto banned = outcome.banned.find(NameOf(i));
      if (banned == outcome.banned.end()) continue;
      ++attackers;
      last = std::max(last, banned->second);
    }
    const size_t honest = outcome.banned.size() - attackers;
    std::string text = attackers == 0 ? "nobody" : absl::StrFormat("%d by version %d", attackers, last);
    if (honest > 0) text += absl::StrFormat(", %d honest", honest);
    return text;
  }

  std::string folder_;
  int runs_ = 0;
};

}  // namespace
}  // namespace atl::byzantine

// Without an argument both tables; "losses" or "bans" one of them.
int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  atl::byzantine::Table table;
  if (wanted != "bans") table.Losses();
  if (wanted != "losses") table.Bans();
  return 0;
}
