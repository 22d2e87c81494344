#include "worker/app/write_output.h"

#include <cerrno>
#include <string>
#include <system_error>

namespace atl {

absl::Status WriteOutput(std::string_view text, std::FILE* out) {
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fflush(out) == 0 && whole) return absl::OkStatus();
  if (errno == EPIPE) return absl::OkStatus();
  const std::string why = errno == 0 ? "is the disk full?" : std::generic_category().message(errno);
  return absl::ResourceExhaustedError("standard output took not everything: " + why);
}

}  // namespace atl
