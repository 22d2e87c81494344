#ifndef ATOLL_CLI_CONFIRMATION_CHECK_H_
#define ATOLL_CLI_CONFIRMATION_CHECK_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/confirmation.h"

// Checks of workers' signatures without a coordinator: `atollctl verify --confirmations`.

namespace atl {

/// The JSON file that `--export` writes and `--file` reads (docs/reference/wire_format.md, "Confirmations").
struct ConfirmationFile {
  std::string run_id = {};
  std::vector<SignedConfirmation> confirmations = {};
};
std::string ConfirmationFileToJson(const ConfirmationFile& file);
/// InvalidArgument names the invalid entry.
absl::StatusOr<ConfirmationFile> ParseConfirmationFile(const std::string& json);

/// Adds the confirmations of another source. InvalidArgument if they belong to another run.
absl::Status AddConfirmations(const ConfirmationFile& more, ConfirmationFile& file);

struct ConfirmationReport {
  /// Columns: fragment, version, hash, workers that signed it, workers whose confirmation does not count and
  /// why.
  std::vector<std::vector<std::string>> rows = {};
  std::vector<std::string> problems = {};  // each a sentence; empty: every signature is good, and all agree
  size_t good = 0;                         // signatures that count
};
/// Checks every signature, and that all counted signatures of a version are for the same hash.
ConfirmationReport CheckConfirmations(const ConfirmationFile& file, const PeerKeys& pinned);

}  // namespace atl

#endif  // ATOLL_CLI_CONFIRMATION_CHECK_H_
