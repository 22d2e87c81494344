#include "common/exit_codes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

struct Row {
  ExitCode code;
  const char* meaning;
};

constexpr Row kTable[] = {
    {ExitCode::kOk, "done"},
    {ExitCode::kInternal, "internal error (please report it); doctor: a check failed"},
    {ExitCode::kUsage, "wrong command line, configuration or value, or --yes is missing"},
    {ExitCode::kUnavailable, "unavailable: the coordinator cannot be reached, or a port is in use"},
    {ExitCode::kStorage, "storage: locked, full, damaged or not writable; verify: a version differs"},
    {ExitCode::kRejected,
     "refused by the coordinator: unknown name, wrong state, name taken, other run, banned"},
    {ExitCode::kBadFiles, "files: missing, unreadable, truncated, or made with another tokenizer"},
    {ExitCode::kNumerics, "numerics: loss or gradient not finite"},
    {ExitCode::kUncounted, "drained, but the worker's last contribution was not accepted"},
    {ExitCode::kUntrusted,
     "untrusted: workers signed different parameters for one version, or a signature is forged"},
    {ExitCode::kInterrupted, "interrupted, or a question was answered with no"},
};

}  // namespace

ExitCode DefaultExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kStorage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kAborted:
      return ExitCode::kRejected;
    case absl::StatusCode::kNotFound:
      return ExitCode::kBadFiles;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kInternal;
  }
}

ExitCode LocalExitCode(const absl::Status& status) {
  const ExitCode usual = DefaultExitCode(status);
  return usual == ExitCode::kRejected ? ExitCode::kBadFiles : usual;
}

std::string ExitCodeTable(std::span<const ExitCode> codes) {
  std::string text = "Exit codes:\n";
  for (const Row& row : kTable) {
    if (std::find(codes.begin(), codes.end(), row.code) == codes.end()) continue;
    absl::StrAppendFormat(&text, "  %3d  %s\n", ToInt(row.code), row.meaning);
  }
  return text;
}

std::string ExitCodeTable() {
  std::vector<ExitCode> all;
  for (const Row& row : kTable) all.push_back(row.code);
  return ExitCodeTable(all);
}

}  // namespace atl
