#ifndef ATOLL_SERVER_ROUNDS_RECOVER_FRAGMENTS_H_
#define ATOLL_SERVER_ROUNDS_RECOVER_FRAGMENTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rounds/fragment_state.h"
#include "server/rounds/merge_engine.h"
#include "storage/run_store.h"

// From what is on disk to the tensors of a version. The source is a run or a checkpoint.

namespace atl {

/// The tensors of a version as they are on disk; with `delta_pulls` (MergeEngine) the last vector is what was
/// published. FailedPrecondition when that is not there.
absl::StatusOr<FragmentState> LoadFragment(VersionSource& source, bool delta_pulls, Epoch epoch,
                                           const FragmentLayout& layout, Version version);

/// Makes version state.version + 1 from the record and compares its bits with what was committed. DataLoss
/// when they differ, naming fragment and version, and the contribution that is damaged if one is.
absl::Status Replay(VersionSource& source, MergeEngine& engine, const RoundRecord& record,
                    FragmentState& state);

/// The newest stored version of every fragment, and the rounds after it replayed. DataLoss.
absl::StatusOr<std::vector<FragmentState>> RecoverFragments(VersionSource& source, const Recovery& recovery,
                                                            const std::vector<FragmentLayout>& layouts,
                                                            MergeEngine& engine);

/// Contributions mapped for a merge; the payloads live as long as this.
struct MergeInputs {
  std::vector<std::unique_ptr<Payload>> payloads;
  std::vector<MergeInput> inputs;
};
absl::StatusOr<MergeInputs> MapInputs(VersionSource& source, const std::vector<Contribution>& contributions,
                                      const std::vector<float>& weights);

/// DataLoss naming the first payload whose checksum is not the one that it was accepted with, and its file.
absl::Status CheckPayloads(const MergeInputs& mapped, const std::vector<Contribution>& contributions,
                           MergeEngine& engine);

}  // namespace atl

#endif  // ATOLL_SERVER_ROUNDS_RECOVER_FRAGMENTS_H_
