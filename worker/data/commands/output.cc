#include "worker/data/commands/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "absl/strings/str_format.h"

namespace atl {

void PrintDescription(const std::string& folder, const DatasetDescription& description) {
  uint64_t train = 0;
  for (const TokenFileEntry& entry : description.train) train += entry.tokens;
  absl::PrintF("folder       %s\n", folder);
  absl::PrintF("tokenizer    %s (vocabulary %d)\n", description.tokenizer, description.vocabulary);
  absl::PrintF("training     %d tokens in %d file(s)\n", train, description.train.size());
  absl::PrintF("held out     %d tokens (%s%s)\n", description.validation.tokens,
               description.validation.whole() ? "" : "the end of ", description.validation.name);
  absl::PrintF("fingerprint  %s\n", description.fingerprint);
}

void PrintMixture(const std::string& folder, const MixtureDescription& mixture) {
  uint64_t weights = 0;
  double first_pass = std::numeric_limits<double>::infinity();
  for (const MixturePart& part : mixture.parts) weights += part.weight;
  const auto tokens_of_run = [&](const MixturePart& part) {
    return static_cast<double>(part.train_tokens) * static_cast<double>(weights) / part.weight;
  };
  absl::PrintF("folder       %s\n", folder);
  absl::PrintF("tokenizer    %s (vocabulary %d)\n", mixture.tokenizer, mixture.vocabulary);
  for (const MixturePart& part : mixture.parts) {
    absl::PrintF("dataset      %s: %d of %d samples (%.4g %%), %d training tokens, %d held out\n",
                 part.folder, part.weight, weights, 100.0 * part.weight / static_cast<double>(weights),
                 part.train_tokens, part.held_out_tokens);
    first_pass = std::min(first_pass, tokens_of_run(part));
  }
  for (const MixturePart& part : mixture.parts) {
    if (tokens_of_run(part) > first_pass) continue;
    absl::PrintF("first pass   a run of more than %.0f tokens reads %s more than once\n", first_pass,
                 part.folder);
    break;
  }
  absl::PrintF("fingerprint  %s\n", mixture.fingerprint);
}

void LazyBar::Update(uint64_t done, uint64_t total) {
  if (bar_ == nullptr) {
    ProgressOptions look;
    look.label = label_;
    look.total = total;
    look.unit = unit_;
    look.style = ProgressStyleFor(STDERR_FILENO, std::getenv("TERM"));
    bar_ = std::make_unique<ProgressBar>(look, &clock_, &std::cerr);
  }
  bar_->Update(done);
}

void LazyBar::Finish() {
  if (bar_ != nullptr) bar_->Finish();
}

}  // namespace atl
