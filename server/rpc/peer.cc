#include "server/rpc/peer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace atl {

std::string PeerAddress(const std::string& peer) {
  for (const char* scheme : {"ipv4:", "ipv6:", "unix:"}) {
    if (!absl::StartsWith(peer, scheme)) continue;
    // gRPC escapes the brackets of an IPv6 address.
    return absl::StrReplaceAll(peer.substr(5), {{"%5B", "["}, {"%5D", "]"}});
  }
  return peer;
}

std::string PeerHost(const std::string& peer) {
  const std::string address = PeerAddress(peer);
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return address;
  const bool brackets = address.front() == '[' && colon >= 2 && address[colon - 1] == ']';
  return brackets ? address.substr(1, colon - 2) : address.substr(0, colon);
}

}  // namespace atl
