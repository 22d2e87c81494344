#include "worker/data/commands/output.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

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
