#ifndef ATOLL_CORE_CONFIRMATION_H_
#define ATOLL_CORE_CONFIRMATION_H_

#include <string>

#include "common/ids.h"
#include "core/contribution.h"

namespace atoll {

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

}  // namespace atoll

#endif  // ATOLL_CORE_CONFIRMATION_H_
