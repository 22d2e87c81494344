#include "server/admin/stored_choice.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"

namespace atl {
namespace {

bool Has(const StoredFragment& fragment, Version version) {
  return std::ranges::binary_search(fragment.stored, version);
}

std::string Listed(const std::vector<Version>& versions) {
  return absl::StrJoin(versions, ", ",
                       [](std::string* out, Version version) { absl::StrAppend(out, version.value()); });
}

/// Overlapped runs count the versions of each fragment separately.
std::string OfFragment(size_t index, size_t fragments) {
  return fragments == 1 ? "" : absl::StrFormat(" of fragment %d", index);
}

absl::Status NotStoredYet(Version version, const StoredFragment& fragment, const std::string& of) {
  return absl::UnavailableError(
      absl::StrFormat("version %d%s is published, but not stored yet; stored versions: %s", version.value(),
                      of, Listed(fragment.stored)));
}

absl::Status CheckStored(const StoredFragment& fragment, Version asked, const std::string& of) {
  if (Has(fragment, asked)) return absl::OkStatus();
  if (asked > fragment.head) {
    return absl::NotFoundError(absl::StrFormat("there is no version %d%s yet; the newest version is %d",
                                               asked.value(), of, fragment.head.value()));
  }
  if (asked > fragment.stored.back()) return NotStoredYet(asked, fragment, of);
  return absl::NotFoundError(absl::StrFormat(
      "version %d%s is not kept any more; stored versions: %s. Set checkpoint.keep_versions to keep more "
      "versions, or create checkpoints",
      asked.value(), of, Listed(fragment.stored)));
}

/// The newest version that every fragment has on disk.
std::optional<Version> NewestOfAll(const std::vector<StoredFragment>& fragments) {
  const std::vector<Version>& first = fragments.front().stored;
  const auto of_all = [&](Version version) {
    return std::ranges::all_of(fragments,
                               [&](const StoredFragment& fragment) { return Has(fragment, version); });
  };
  const auto found = std::find_if(first.rbegin(), first.rend(), of_all);
  return found == first.rend() ? std::nullopt : std::optional(*found);
}

}  // namespace

absl::StatusOr<std::vector<Version>> ChooseStored(const std::vector<StoredFragment>& fragments, SyncMode mode,
                                                  std::optional<Version> asked) {
  if (fragments.empty()) {
    return absl::FailedPreconditionError(
        "the run has no parameters yet: no worker has seeded it; start a worker first");
  }
  std::vector<Version> chosen;
  if (!asked && mode != SyncMode::kOverlapped) {
    Version head = fragments.front().head;
    for (const StoredFragment& fragment : fragments) head = std::min(head, fragment.head);
    const std::optional<Version> newest = NewestOfAll(fragments);
    if (!newest || *newest < head) return NotStoredYet(head, fragments.front(), "");
    chosen.assign(fragments.size(), *newest);
    return chosen;
  }
  for (size_t i = 0; i < fragments.size(); ++i) {
    const std::string of = OfFragment(i, fragments.size());
    const Version newest = fragments[i].stored.back();
    if (!asked && newest < fragments[i].head) return NotStoredYet(fragments[i].head, fragments[i], of);
    if (asked) ATOLL_RETURN_IF_ERROR(CheckStored(fragments[i], *asked, of));
    chosen.push_back(asked.value_or(newest));
  }
  return chosen;
}

}  // namespace atl
