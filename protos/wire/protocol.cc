#include "protos/wire/protocol.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/status_detail.h"

namespace atl {

v1::ProtocolVersion OurProtocolVersion() {
  v1::ProtocolVersion version;
  version.set_major(kProtocolMajor);
  version.set_minor(kProtocolMinor);
  return version;
}

absl::Status CheckProtocolVersion(const v1::ProtocolVersion& theirs, std::string_view peer) {
  if (theirs.major() == kProtocolMajor) return absl::OkStatus();
  const std::string who(peer);
  const bool they_are_older = theirs.major() < kProtocolMajor;
  return WithDetail(absl::FailedPreconditionError(
                        absl::StrFormat("the %s speaks protocol %d.%d, this side %d.%d: install the same "
                                        "release on both, the older one is %s",
                                        who, theirs.major(), theirs.minor(), kProtocolMajor, kProtocolMinor,
                                        they_are_older ? "the " + who : "this side")),
                    {"PROTOCOL_MISMATCH", {}, std::nullopt});
}

}  // namespace atl
