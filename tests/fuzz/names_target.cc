#include <algorithm>
#include <string>

#include "cli/address.h"
#include "cli/text.h"
#include "client/rpc/channel.h"
#include "client/sync/identity.h"
#include "common/bind_address.h"
#include "common/signature.h"
#include "core/membership.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/peer.h"
#include "storage/checkpoint_manifest.h"
#include "storage/rocksdb/contribution_folder.h"
#include "tests/fuzz/targets.h"
#include "worker/data/tokenizer.h"

namespace atl::fuzz {
namespace {

void CheckAddresses(const std::string& text) {
  static_cast<void>(CheckAddress(text));
  static_cast<void>(ParseTarget(text));
  static_cast<void>(PeerAddress(text));
  const auto address = ParseBindAddress(text);
  if (!address.ok()) return;
  static_cast<void>(IsLoopback(*address));
  const auto again = ParseBindAddress(address->ToString());
  ATOLL_FUZZ_REQUIRE(again.ok() && again->host == address->host && again->port == address->port);
}

void CheckNames(const std::string& text) {
  ATOLL_FUZZ_REQUIRE(ValidateWorkerName(MakeWorkerName(text, kMaxWorkerName)).ok());
  if (CheckCheckpointName(text).ok()) ATOLL_FUZZ_REQUIRE(text.find('/') == std::string::npos);
  static_cast<void>(MakeTokenizer(text));
  const auto key = ContributionFolder::ParseFileName(text);
  if (!key) return;
  ATOLL_FUZZ_REQUIRE(ContributionFolder::FileName(*key) == text);
  ATOLL_FUZZ_REQUIRE(text.find('/') == std::string::npos);
}

/// Nothing that a worker says of itself moves a terminal's cursor.
void CheckPrintable(const std::string& text) {
  const std::string printable = Printable(text);
  const bool quiet =
      std::ranges::none_of(printable, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
  ATOLL_FUZZ_REQUIRE(quiet);
  ATOLL_FUZZ_REQUIRE(Columns(printable) <= printable.size());
}

}  // namespace

// which:u8, then a text: an address, a name, or words for a terminal.
void FuzzNames(FuzzInput in) {
  const uint8_t which = in.Byte();
  const std::string text = in.RestText();
  if (which % 4 == 0) CheckAddresses(text);
  if (which % 4 == 1) CheckNames(text);
  if (which % 4 == 2) CheckPrintable(text);
  if (which % 4 == 3) {
    const std::string key = text.substr(0, kPublicKeyBytes);
    const std::string rest = text.substr(key.size());
    // A key of a small order may be one for which this holds; that is its owner's affair.
    static_cast<void>(VerifySignature(key, "message", rest));
  }
}

}  // namespace atl::fuzz
