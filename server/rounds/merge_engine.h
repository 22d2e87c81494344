#ifndef ATOLL_SERVER_ROUNDS_MERGE_ENGINE_H_
#define ATOLL_SERVER_ROUNDS_MERGE_ENGINE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/content_hash.h"
#include "core/contribution.h"
#include "core/merge_planner.h"
#include "core/offences.h"
#include "core/run_options.h"
#include "server/publish/snapshot.h"
#include "server/rounds/fragment_state.h"
#include "server/rounds/parallel_for.h"
#include "server/rounds/tensor_buffer.h"
#include "server/rounds/tensor_pool.h"

namespace atl {

/// What a version hashes to (RoundRecord): parameters is the hash of theta's bytes, state that of the state
/// vectors' blocks of 1 MiB one vector after the other (of one vector: the hash of its bytes; of none: that
/// of the empty string), published that of the published payload (with delta pulls: of the values that
/// followers and joiners hold, as float32).
struct VersionHashes {
  ContentHash parameters;
  ContentHash state;
  ContentHash published;
  friend bool operator==(const VersionHashes&, const VersionHashes&) = default;
};

/// A version computed and not committed yet: not visible to anybody.
struct ComputedVersion {
  std::shared_ptr<const TensorBuffer> theta;
  std::shared_ptr<const TensorBuffer> published;  // with delta pulls only
  VersionHashes hashes;
  std::shared_ptr<Snapshot> snapshot;  // complete but for committed_tokens
};

/// Turns contributions into the next version, on several threads, block by block of 1 MiB. The bits do not
/// depend on the number of threads. Not thread-safe: one round at a time.
class MergeEngine {
 public:
  /// `delta`: versions are published as float32, and as the difference to the one before in this codec, which
  /// has a fixed number of bytes per block.
  MergeEngine(uint32_t threads, CodecKind pull_codec, std::optional<CodecKind> delta = std::nullopt)
      : parallel_(threads), pull_codec_(pull_codec), delta_(delta) {}

  /// Whether FragmentState::published is used.
  bool delta_pulls() const { return delta_.has_value(); }

  /// Decode, merge and outer step over the whole fragment, after as many passes over the payloads as the
  /// merge needs (MergePlanner). The inputs are at least one, in summation order and validated. Updates
  /// state.state in place and leaves everything else of it alone. FailedPrecondition when a result
  /// is not finite: state.state is then worthless, nothing may be committed, and the caller must restore it.
  ///
  /// `findings`, when it is set, gets what the merge found out about its inputs; `compare`: also how each
  /// lies to the merge, which costs one more decoding of all payloads.
  absl::StatusOr<ComputedVersion> Step(std::span<const MergeInput> inputs, const MergeOptions& merge,
                                       const OuterOptions& outer, FragmentState& state,
                                       MergeFindings* findings = nullptr, bool compare = false);

  /// The snapshot and hashes of what `state` holds; with delta pulls, without a difference to anything.
  ComputedVersion Publish(const FragmentState& state);

  /// work(0) .. work(pieces - 1) on the threads of the merge.
  void ForEach(size_t pieces, const std::function<void(size_t)>& work) { parallel_.Run(pieces, work); }

 private:
  struct Seals;
  /// Runs `make` on every piece, and hashes, checksums and encodes the piece while it is in the cache.
  using MakePiece = std::function<absl::Status(uint64_t first, uint64_t size)>;
  struct Making;
  Making Begin(const FragmentState& state, std::shared_ptr<const TensorBuffer> theta, Version version) const;
  absl::StatusOr<ComputedVersion> Make(const FragmentState& state, const Making& making,
                                       const MakePiece& make);
  /// What travels of a piece, from theta.
  absl::Status PublishPiece(const FragmentState& state, const Making& making, uint64_t first,
                            uint64_t size) const;
  /// Hashes (when `hashes` is not null) and checksums of the blocks of a payload.
  void SealPayload(std::span<const std::byte> payload, std::vector<uint32_t>& crcs,
                   std::vector<Hash128>* hashes);

  ParallelFor parallel_;
  TensorPool pool_;
  TensorPool published_pool_;
  const CodecKind pull_codec_;
  const std::optional<CodecKind> delta_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_MERGE_ENGINE_H_
