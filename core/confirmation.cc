#include "core/confirmation.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/signature.h"
#include "common/status.h"
#include "core/membership.h"

namespace atl {

std::string ConfirmationText(const ConfirmationAuthor& author, const Confirmation& confirmation) {
  return absl::StrFormat("atoll-confirmation/1\n%s\n%d\n%s\n%d\n%d\n%d\n%d\n", author.run_id,
                         author.epoch.value(), author.worker, confirmation.fragment.value(),
                         confirmation.version.value(), confirmation.published.low,
                         confirmation.published.high);
}

bool IsSigned(std::string_view run_id, const SignedConfirmation& one) {
  const ConfirmationAuthor author{.run_id = std::string(run_id), .epoch = one.epoch, .worker = one.worker};
  return VerifySignature(one.public_key, ConfirmationText(author, one.confirmation),
                         one.confirmation.signature);
}

absl::StatusOr<PeerKeys> ParsePeerKeys(std::string_view text) {
  PeerKeys keys;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++line_number;
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty() || words.front().starts_with('#')) continue;
    const std::optional<std::string> key = words.size() == 2 ? FromHex(words[1]) : std::nullopt;
    if (!key.has_value() || key->size() != kPublicKeyBytes || !ValidateWorkerName(words.front()).ok()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "line %d: expected a worker's name and its public key in 64 hexadecimal digits", line_number));
    }
    if (!keys.emplace(words.front(), *key).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("line %d: a second key of worker '%s'", line_number, words.front()));
    }
  }
  return keys;
}

absl::StatusOr<PeerKeys> ReadPeerKeys(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxPeerKeysBytes));
  absl::StatusOr<PeerKeys> keys = ParsePeerKeys(text);
  if (keys.ok() && !keys->empty()) return keys;
  return absl::InvalidArgumentError(
      absl::StrFormat("--peer-keys %s: %s", path,
                      keys.ok() ? "the file contains no key" : std::string(keys.status().message())));
}

std::string_view PeerFindingName(PeerFinding finding) {
  switch (finding) {
    case PeerFinding::kEqual:
      return "equal";
    case PeerFinding::kDifferent:
      return "different";
    case PeerFinding::kForged:
      return "forged";
    case PeerFinding::kOtherKey:
      return "other key";
    case PeerFinding::kUncounted:
      break;
  }
  return "not counted";
}

PeerFinding JudgePeer(std::string_view run_id, Epoch epoch, const PeerKeys& pinned, const ContentHash& mine,
                      const SignedConfirmation& theirs) {
  if (theirs.epoch != epoch) return PeerFinding::kUncounted;
  if (!pinned.empty()) {
    const auto known = pinned.find(theirs.worker);
    if (known == pinned.end()) return PeerFinding::kUncounted;
    if (known->second != theirs.public_key) return PeerFinding::kOtherKey;
  }
  if (!IsSigned(run_id, theirs)) return PeerFinding::kForged;
  return theirs.confirmation.published == mine ? PeerFinding::kEqual : PeerFinding::kDifferent;
}

}  // namespace atl
