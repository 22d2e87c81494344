#ifndef ATOLL_CORE_CONFIRMATION_H_
#define ATOLL_CORE_CONFIRMATION_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/contribution.h"

namespace atl {

/// A worker's word that it holds exactly these published parameters: its vote on the model's hash
/// (Confirmation in types.proto).
struct Confirmation {
  FragmentId fragment = {};
  Version version = {};
  ContentHash published = {};  // of the published payload, computed from the worker's own memory
  std::string signature = {};  // Ed25519 over ConfirmationText
  friend bool operator==(const Confirmation&, const Confirmation&) = default;
};

/// Whose confirmation it is. Part of what is signed, so that it cannot be shown as that of another worker,
/// run or epoch.
struct ConfirmationAuthor {
  std::string run_id = {};
  Epoch epoch = {};
  WorkerName worker = {};
};

/// The text that is signed: "atoll-confirmation/1", run id, epoch, worker, fragment, version, low and high
/// half of the hash, each followed by a newline, numbers in decimal.
std::string ConfirmationText(const ConfirmationAuthor& author, const Confirmation& confirmation);

/// A confirmation with its author, as a coordinator shows it to others.
struct SignedConfirmation {
  WorkerName worker = {};
  std::string public_key = {};  // as the coordinator tells it
  Epoch epoch = {};
  Confirmation confirmation = {};
  friend bool operator==(const SignedConfirmation&, const SignedConfirmation&) = default;
};

/// Whether the owner of `one.public_key` signed it, for this run.
bool IsSigned(std::string_view run_id, const SignedConfirmation& one);

/// Public keys of workers that were received from them, rather than from the coordinator.
using PeerKeys = std::map<WorkerName, std::string>;

/// Lines of a worker's name and its public key in 64 hexadecimal digits; blank lines and lines that begin
/// with '#' are skipped. InvalidArgument naming the line.
absl::StatusOr<PeerKeys> ParsePeerKeys(std::string_view text);

/// The keys in a file (--peer-keys) of at most kMaxPeerKeysBytes. InvalidArgument naming option and file when
/// a line is wrong, or when there is no key: nothing would be pinned then. Otherwise as ReadFile.
absl::StatusOr<PeerKeys> ReadPeerKeys(const std::string& path);
inline constexpr uint64_t kMaxPeerKeysBytes = 1 << 20;

/// What a confirmation that the coordinator shows says to somebody who holds a hash of the same version.
enum class PeerFinding : uint8_t {
  kEqual,      // the worker signed the same hash
  kDifferent,  // the worker signed another one
  kForged,     // the key that is shown did not sign it
  kOtherKey,   // the key that is shown is not the one in `pinned`
  kUncounted,  // `pinned` has keys, and none of this worker; or it is of another epoch
};
/// "equal", "different", "forged", "other key", "not counted".
std::string_view PeerFindingName(PeerFinding finding);

/// What the holder of `mine` finds in it. `pinned` empty: the keys that are shown are believed.
PeerFinding JudgePeer(std::string_view run_id, Epoch epoch, const PeerKeys& pinned, const ContentHash& mine,
                      const SignedConfirmation& theirs);

}  // namespace atl

#endif  // ATOLL_CORE_CONFIRMATION_H_
