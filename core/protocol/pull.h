#ifndef ATOLL_CORE_PROTOCOL_PULL_H_
#define ATOLL_CORE_PROTOCOL_PULL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/ids.h"
#include "core/contribution.h"
#include "core/protocol/run_state.h"
#include "core/run_options.h"

namespace atl {

/// The size of every chunk of a payload but the last. Parts of a payload begin and end at multiples of it.
inline constexpr size_t kWireChunkBytes = size_t{1} << 20;

struct PullCall {
  FragmentId fragment = {};
  std::optional<Version> after = std::nullopt;  // wait for a version above this one; none: the head
  Duration wait{};                              // how long the call may wait for it, at most 60 s
  /// What the caller holds bit for bit, of this epoch: the answer may be a difference to it.
  std::optional<Version> have = std::nullopt;
  bool zstd = false;  // chunks may come packed
};

/// A part of the payload of one version, or of one difference (PullRange on the wire).
struct PullPart {
  Version version = {};
  std::optional<Version> delta_base = std::nullopt;
  uint64_t first_byte = 0;
  uint64_t end_byte = 0;  // 0: to the end
};

enum class PullOutcome : uint8_t { kParameters, kNotYet, kRunFinished };

/// What stands before the payload of a pull (PullHeader on the wire).
struct PullReply {
  PullOutcome outcome = PullOutcome::kNotYet;
  RunState state = RunState::kUnknown;
  std::string waiting_for = {};  // kNotYet

  // The rest is of kParameters only.
  Epoch epoch = {};
  Version version = {};
  CodecKind codec = CodecKind::kFp32;
  uint64_t elements = 0;
  uint64_t payload_bytes = 0;
  ContentHash published = {};  // with a difference: of what comes of it
  /// Set: a difference to this version comes, in the first bytes of the payload. Below the head: there is no
  /// plan, and the next one is to be asked for.
  std::optional<Version> delta_base = std::nullopt;
  Version head = {};
  RoundPlan plan = {};
  // Which bytes of the payload come. Both 0: all.
  uint64_t first_byte = 0;
  uint64_t end_byte = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_PROTOCOL_PULL_H_
