#include "core/one_version.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr int kPasses = 5;

}  // namespace

absl::Status PullUntilOneVersion(std::span<Version> versions, PullAgain pull) {
  if (versions.empty()) return absl::OkStatus();
  for (int pass = 0;; ++pass) {
    const auto [oldest, newest] = std::ranges::minmax(versions);
    if (oldest == newest) return absl::OkStatus();
    if (pass == kPasses) {
      return absl::UnavailableError(absl::StrFormat(
          "the fragments have versions %d to %d, even after %d more pulls, because new versions are "
          "published during the pulls. Pause the run (`atollctl run pause`), or retry",
          oldest.value(), newest.value(), kPasses));
    }
    for (size_t i = 0; i < versions.size(); ++i) {
      if (versions[i] == newest) continue;
      ATOLL_ASSIGN_OR_RETURN(const std::optional<Version> version, pull(i, Version(newest.value() - 1)));
      versions[i] = version.value_or(versions[i]);
    }
  }
}

}  // namespace atl
