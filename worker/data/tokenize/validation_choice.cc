#include "worker/data/tokenize/validation_choice.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace atl {
namespace {

using By = ValidationChoice::By;

constexpr char kForms[] =
    "expected share:0.05 (the end of the text), hash:0.05 (documents by their hash), or file:NAME";

}  // namespace

bool ValidationChoice::HoldsOut(uint64_t hash) const {
  return static_cast<double>(hash) < std::ldexp(share, 64);
}

absl::StatusOr<ValidationChoice> ParseValidation(const std::vector<std::string>& texts) {
  ValidationChoice choice;
  bool first = true;
  for (const std::string& text : texts) {
    std::string_view value = text;
    By by = By::kShare;
    const auto takes = [&](std::string_view prefix) {
      if (!value.starts_with(prefix)) return false;
      value.remove_prefix(prefix.size());
      return true;
    };
    if (takes("file:")) {
      by = By::kFiles;
    } else if (takes("hash:")) {
      by = By::kHash;
    } else {
      takes("share:");
    }
    if (!first && (by != By::kFiles || choice.by != By::kFiles)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' beside '", texts.front(), "': only file:NAME may stand several times"));
    }
    first = false;
    choice.by = by;
    if (by == By::kFiles) {
      if (value.empty())
        return absl::InvalidArgumentError(absl::StrCat("'", text, "' names no file; ", kForms));
      choice.files.emplace_back(value);
      continue;
    }
    if (!absl::SimpleAtod(std::string(value), &choice.share)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", kForms));
    }
    if (!(choice.share > 0 && choice.share < 1)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "': the share must be above 0 and below 1"));
    }
  }
  return choice;
}

}  // namespace atl
