#ifndef ATOLL_CLIENT_SYNC_PUBLISHED_VALUES_H_
#define ATOLL_CLIENT_SYNC_PUBLISHED_VALUES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sync/connection.h"
#include "common/log.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"

namespace atl {

/// How the run's versions travel down (codec.pull, codec.pull_delta, codec.zstd).
struct PullEncoding {
  CodecKind full = CodecKind::kFp32;
  std::optional<CodecKind> delta = std::nullopt;
  bool zstd = false;

  static PullEncoding Of(const RunOptions& run) {
    return {.full = run.pull_codec, .delta = run.pull_delta, .zstd = run.zstd};
  }
};

/// Asks for a version of the fragment above `after`; none: for the head. `have`: the version whose values the
/// answer may be a difference to; none: all of it is wanted. `wait` is how long the coordinator may hold the
/// call.
PullRequest RequestFor(const FragmentLayout& fragment, const PullEncoding& encoding,
                       std::optional<Version> after, std::optional<Version> have, Duration wait);

/// WRONG_EPOCH: the run was restored since the worker joined in `epoch`.
absl::Status CheckEpoch(const PulledVersion& pulled, Epoch epoch);
/// WentBack, which is logged: the version is below `held`.
absl::Status CheckNotBack(const PulledVersion& pulled, FragmentId fragment, Version held, const Logger& log);

/// Of values as they lie in this memory, encoded as they were published: what the coordinator's hash of the
/// version must be. `scratch` is room for the payload.
ContentHash HashPublished(std::span<const float> values, CodecKind pull, std::vector<std::byte>& scratch);

enum class Landing : uint8_t {
  kThere,    // `values` are the version that was pulled, which is the head's
  kOneStep,  // they are a version on the way to the head: pull again, having it
  kAstray,   // what was held is not what was published: they are worthless, pull in full
};

/// Makes `values` of what was pulled with `request`: decodes it, or adds the difference to what they hold.
/// The error is that of a payload that makes no sense.
absl::StatusOr<Landing> Land(const PullRequest& request, const PulledVersion& pulled,
                             std::span<const std::byte> payload, std::span<float> values);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_PUBLISHED_VALUES_H_
