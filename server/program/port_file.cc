#include "server/program/port_file.h"

#include <unistd.h>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/left_over.h"

namespace atl {
namespace {

// How every coordinator begins it.
constexpr char kBegin[] = "{\"data\": \"";

}  // namespace

absl::Status CheckPortFile(const std::string& path) {
  return path.empty() ? absl::OkStatus() : CheckLeftOver("--port-file", path, kBegin);
}

absl::Status WritePortFile(const std::string& path, const PortAddresses& addresses) {
  return WriteFileAtomically(
      path, absl::StrFormat("%s%s\", \"admin\": \"%s\", \"metrics\": \"%s\", \"health\": \"%s\", "
                            "\"web\": \"%s\", \"pid\": %d}\n",
                            kBegin, addresses.data, addresses.admin, addresses.metrics, addresses.health,
                            addresses.web, ::getpid()));
}

}  // namespace atl
