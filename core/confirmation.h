#ifndef ATOLL_CORE_CONFIRMATION_H_
#define ATOLL_CORE_CONFIRMATION_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "core/contribution.h"

namespace atl {

/// A worker's signed statement that it holds exactly these published parameters (Confirmation in
/// types.proto).
struct Confirmation {
  FragmentId fragment = {};
  Version version = {};
  ContentHash published = {};  // of the published payload, computed from the worker's own memory
  std::string signature = {};  // Ed25519 over ConfirmationText
  friend bool operator==(const Confirmation&, const Confirmation&) = default;
};

/// The author of a confirmation. It is part of the signed text, so a confirmation cannot be presented as that
/// of another worker, run or epoch.
struct ConfirmationAuthor {
  std::string run_id = {};
  Epoch epoch = {};
  WorkerName worker = {};
};

/// The signed text: "atoll-confirmation/1", run id, epoch, worker, fragment, version, low and high
/// half of the hash, each followed by a newline, numbers in decimal.
std::string ConfirmationText(const ConfirmationAuthor& author, const Confirmation& confirmation);

/// A confirmation with its author, as the coordinator sends it to others.
struct SignedConfirmation {
  WorkerName worker = {};
  std::string public_key = {};  // as reported by the coordinator
  Epoch epoch = {};
  Confirmation confirmation = {};
  friend bool operator==(const SignedConfirmation&, const SignedConfirmation&) = default;
};

/// Whether the owner of `one.public_key` signed it, for this run.
bool IsSigned(std::string_view run_id, const SignedConfirmation& one);

/// Public keys that came from the workers themselves, not from the coordinator.
using PeerKeys = std::map<WorkerName, std::string>;

/// Lines of a worker's name and its public key in 64 hexadecimal digits; blank lines and lines that begin
/// with '#' are skipped. InvalidArgument naming the line.
absl::StatusOr<PeerKeys> ParsePeerKeys(std::string_view text);

/// Reads the keys of a file (--peer-keys) of at most kMaxPeerKeysBytes. InvalidArgument, with option and
/// file, if a line is wrong or the file has no key, because then nothing would be pinned. Other errors as
/// ReadFile.
absl::StatusOr<PeerKeys> ReadPeerKeys(const std::string& path);
inline constexpr uint64_t kMaxPeerKeysBytes = 1 << 20;

/// The result of comparing a confirmation from the coordinator with one's own hash of the same version.
enum class PeerFinding : uint8_t {
  kEqual,      // the worker signed the same hash
  kDifferent,  // the worker signed another hash
  kForged,     // the reported key did not sign it
  kOtherKey,   // the reported key differs from the one in `pinned`
  kUncounted,  // `pinned` has keys but none of this worker; or another epoch
};
/// "equal", "different", "forged", "other key", "not counted".
std::string_view PeerFindingName(PeerFinding finding);

/// Compares it with `mine`. If `pinned` is empty, trusts the reported keys.
PeerFinding JudgePeer(std::string_view run_id, Epoch epoch, const PeerKeys& pinned, const ContentHash& mine,
                      const SignedConfirmation& theirs);

}  // namespace atl

#endif  // ATOLL_CORE_CONFIRMATION_H_
