#ifndef ATOLL_CLI_CONFIRMATION_CHECK_H_
#define ATOLL_CLI_CONFIRMATION_CHECK_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/confirmation.h"

// Checks of workers' signatures without a coordinator: `atollctl verify --confirmations`.

namespace atl {

/// What `--export` writes and `--file` reads: JSON, described in docs/reference/wire_format.md
/// ("Confirmations").
struct ConfirmationFile {
  std::string run_id = {};
  std::vector<SignedConfirmation> confirmations = {};
};
std::string ConfirmationFileToJson(const ConfirmationFile& file);
/// InvalidArgument naming the entry.
absl::StatusOr<ConfirmationFile> ParseConfirmationFile(const std::string& json);

/// Adds what another source shows of the same run. InvalidArgument when it is of another run.
absl::Status AddConfirmations(const ConfirmationFile& more, ConfirmationFile& file);

struct ConfirmationReport {
  /// Fragment, version, hash, workers that signed it, workers whose confirmation does not count and why.
  std::vector<std::vector<std::string>> rows = {};
  std::vector<std::string> problems = {};  // each a sentence; empty: every signature is good, and all agree
  size_t good = 0;                         // signatures that count
};
/// Checks every signature, and that all that count are of one hash a version.
ConfirmationReport CheckConfirmations(const ConfirmationFile& file, const PeerKeys& pinned);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIRMATION_CHECK_H_
