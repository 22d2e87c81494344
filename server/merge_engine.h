#ifndef ATOLL_SERVER_MERGE_ENGINE_H_
#define ATOLL_SERVER_MERGE_ENGINE_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/contribution.h"
#include "core/merge_planner.h"
#include "core/run_options.h"
#include "server/fragment_state.h"
#include "server/parallel_for.h"
#include "server/snapshot.h"
#include "server/tensor_buffer.h"
#include "server/tensor_pool.h"

namespace atoll {

/// What a version hashes to (RoundRecord): parameters is the hash of theta's bytes, state that of the state
/// vectors' blocks of 1 MiB one vector after the other (of one vector: the hash of its bytes; of none: that
/// of the empty string), published that of the published payload.
struct VersionHashes {
  ContentHash parameters;
  ContentHash state;
  ContentHash published;
  friend bool operator==(const VersionHashes&, const VersionHashes&) = default;
};

/// A version computed and not committed yet: not visible to anybody.
struct ComputedVersion {
  std::shared_ptr<const TensorBuffer> theta;
  VersionHashes hashes;
  std::shared_ptr<Snapshot> snapshot;  // complete but for committed_tokens
};

/// Turns contributions into the next version, on several threads, block by block of 1 MiB. The bits do not
/// depend on the number of threads. Not thread-safe: one round at a time.
class MergeEngine {
 public:
  MergeEngine(uint32_t threads, CodecKind pull_codec) : parallel_(threads), pull_codec_(pull_codec) {}

  /// Decode, merge and outer step over the whole fragment, after as many passes over the payloads as the
  /// merge needs (MergePlanner). The inputs are at least one, in summation order and validated. Updates
  /// state.state in place and leaves theta, version and outer_steps alone. FailedPrecondition when a result
  /// is not finite: state.state is then worthless, nothing may be committed, and the caller must restore it.
  absl::StatusOr<ComputedVersion> Step(std::span<const MergeInput> inputs, const MergeOptions& merge,
                                       const OuterOptions& outer, FragmentState& state);

  /// The snapshot and hashes of what `state` holds.
  ComputedVersion Publish(const FragmentState& state);

 private:
  struct Seals;
  /// Runs `make` on every piece, and hashes, checksums and encodes the piece while it is in the cache.
  using MakePiece = std::function<absl::Status(uint64_t first, uint64_t size)>;
  absl::StatusOr<ComputedVersion> Make(const FragmentState& state, std::shared_ptr<const TensorBuffer> theta,
                                       Version version, const MakePiece& make);
  void SealEncoded(Snapshot& snapshot, Seals& seals);

  ParallelFor parallel_;
  TensorPool pool_;
  const CodecKind pull_codec_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_MERGE_ENGINE_H_
