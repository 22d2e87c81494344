#include "worker/app/token_output.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/app/write_output.h"

namespace atl {

TextOutput::TextOutput(const Tokenizer& tokenizer, const std::string& prompt, std::vector<std::string> stops,
                       std::FILE* out)
    : stream_(tokenizer, std::move(stops)), out_(out), status_(WriteOutput(prompt, out)) {}

bool TextOutput::Take(TokenId token) {
  const std::string text = stream_.Add(token);
  if (status_.ok() && !text.empty()) status_ = WriteOutput(text, out_);
  return status_.ok() && !stream_.stopped();
}

absl::Status TextOutput::Finish() {
  return status_.ok() ? WriteOutput(stream_.Finish() + "\n", out_) : status_;
}

bool NumberOutput::Take(TokenId token) {
  if (status_.ok()) status_ = WriteOutput(absl::StrCat(first_ ? "" : " ", token), out_);
  first_ = false;
  return status_.ok();
}

absl::Status NumberOutput::Finish() { return status_.ok() ? WriteOutput("\n", out_) : status_; }

}  // namespace atl
