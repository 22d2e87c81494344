#ifndef ATOLL_CORE_PROTOCOL_PUSH_H_
#define ATOLL_CORE_PROTOCOL_PUSH_H_

#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "core/contribution.h"
#include "core/protocol/member_ref.h"
#include "core/run_options.h"

namespace atl {

/// One contribution, named within its member and epoch (PushRef on the wire).
struct PushKey {
  FragmentId fragment = {};
  Version base = {};
  uint32_t sequence = 0;
  friend bool operator==(const PushKey&, const PushKey&) = default;
};

/// Between the key within a member and the one within the run.
inline PushKey PushKeyOf(const ContributionKey& key) {
  return {.fragment = key.fragment, .base = key.base, .sequence = key.sequence};
}
inline ContributionKey ContributionKeyOf(const MemberRef& member, const PushKey& key) {
  return {.epoch = member.epoch,
          .fragment = key.fragment,
          .base = key.base,
          .worker = member.worker,
          .sequence = key.sequence};
}

/// One contribution on its way. The payload is sent beside it and never changes between attempts.
struct PushHeader {
  PushKey key = {};
  CodecKind codec = CodecKind::kFp32;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc32c = 0;
  uint64_t tokens = 0;
  uint32_t steps = 0;
  std::optional<uint32_t> partition = std::nullopt;  // of the shared data; none: local data
  uint64_t samples_consumed = 0;                     // position in it after this contribution
  double mean_loss = 0;                              // nats per token
  /// The sender packs chunks where that makes them smaller. Each chunk says so itself; the message has no
  /// such field.
  bool zstd = false;
  friend bool operator==(const PushHeader&, const PushHeader&) = default;
};

/// The contribution is on the coordinator's disk.
struct PushReply {
  bool duplicate = false;
  Version head = {};
  uint32_t arrived = 0;
  uint32_t expected = 0;
};

/// What became of a contribution.
enum class PushStage : uint8_t { kUnknown, kPartial, kAccepted, kCommitted, kMissed };

struct PushStatusReply {
  PushStage stage = PushStage::kUnknown;
  uint64_t received_bytes = 0;
  Version head = {};
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_PUSH_H_
