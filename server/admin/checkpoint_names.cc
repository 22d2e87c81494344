#include "server/admin/checkpoint_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/did_you_mean.h"

namespace atl {
namespace {

constexpr size_t kMostNamed = 10;

}  // namespace

absl::Status NameCheckpoints(RunStore& store, const std::string& name, const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  const auto entries = store.ListCheckpoints(false);
  if (!entries.ok()) return status;
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : *entries) names.push_back(entry.manifest.name);
  std::string message = absl::StrFormat("checkpoint '%s' does not exist", name);
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(message, "; the run has no checkpoints"));
  }
  const std::string similar = DidYouMean(name, names);
  if (!similar.empty()) absl::StrAppend(&message, "; did you mean '", similar, "'?");
  std::ranges::reverse(names);  // the newest first
  const size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  absl::StrAppend(&message, similar.empty() ? "; the" : " The", " run has ", absl::StrJoin(names, ", "));
  if (more > 0) absl::StrAppend(&message, " and ", more, " older ones");
  return absl::NotFoundError(message);
}

}  // namespace atl
