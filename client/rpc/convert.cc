#include "client/rpc/convert.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "protos/config/run_config.h"
#include "protos/wire/field_check.h"
#include "protos/wire/join.h"
#include "protos/wire/pull.h"

namespace atl {

absl::StatusOr<JoinedRun> JoinedRunFromProto(const v1::JoinReply& reply, const JoinCall& call) {
  JoinedRun joined;
  ATOLL_ASSIGN_OR_RETURN(static_cast<JoinReply&>(joined), JoinReplyFromProto(reply, call));
  ATOLL_ASSIGN_OR_RETURN(joined.run, ToRunOptions(reply.config()));
  return joined;
}

v1::PullRequest PullRequestToProto(const MemberRef& member, const PullRequest& pull_request) {
  v1::PullRequest request = PullCallToProto(member, pull_request.call);
  const PullProgress* const left = pull_request.progress;
  if (left == nullptr || left->blocks.empty()) return request;
  *request.mutable_range() = PullPartToProto({.version = left->version,
                                              .delta_base = left->delta_base,
                                              .first_byte = left->blocks.size() * kHashBlockBytes});
  return request;
}

namespace {

/// That the payload is what this side has room for, and can decode.
absl::Status CheckPayload(const PullReply& reply, const PullRequest& pull_request) {
  if (reply.delta_base.has_value()) {
    if (reply.delta_base != pull_request.call.have || reply.version <= *reply.delta_base ||
        reply.head < reply.version) {
      return BadReply(absl::StrFormat("a difference from version %d to %d, with head %d",
                                      reply.delta_base->value(), reply.version.value(), reply.head.value()));
    }
  }
  const CodecKind expected = reply.delta_base.has_value() ? pull_request.delta_codec : pull_request.codec;
  const uint64_t payload_bytes = CodecFor(expected).EncodedSize(pull_request.elements);
  if (reply.codec != expected || reply.elements != pull_request.elements ||
      reply.payload_bytes != payload_bytes) {
    return BadReply(absl::StrFormat(
        "fragment %d comes as %d elements in codec %d and %d bytes, expected %d in codec %d and %d bytes",
        pull_request.call.fragment.value(), reply.elements, static_cast<int>(reply.codec),
        reply.payload_bytes, pull_request.elements, static_cast<int>(expected), payload_bytes));
  }
  return absl::OkStatus();
}

/// Which bytes come: all, the rest of an attempt that broke, or the first part of either.
absl::Status TakeRange(const PullRequest& pull_request, bool in_parts, PullReply& reply) {
  if (reply.first_byte == 0 && reply.end_byte == 0) {
    reply.end_byte = reply.payload_bytes;
    return absl::OkStatus();
  }
  const PullProgress* const left = pull_request.progress;
  const bool goes_on = left != nullptr && left->epoch == reply.epoch && left->version == reply.version &&
                       left->delta_base == reply.delta_base &&
                       reply.first_byte == left->blocks.size() * kHashBlockBytes;
  const bool begins = goes_on || (in_parts && reply.first_byte == 0);
  const bool a_part = in_parts && reply.end_byte > reply.first_byte && reply.end_byte < reply.payload_bytes &&
                      reply.end_byte % kHashBlockBytes == 0;
  if (begins && (a_part || reply.end_byte == reply.payload_bytes)) return absl::OkStatus();
  return BadReply(absl::StrFormat("bytes %d to %d of version %d, which were not asked for", reply.first_byte,
                                  reply.end_byte, reply.version.value()));
}

}  // namespace

absl::StatusOr<PulledVersion> PulledFromProto(const v1::PullHeader& header, const PullRequest& pull_request,
                                              bool in_parts) {
  PulledVersion pulled;
  ATOLL_ASSIGN_OR_RETURN(static_cast<PullReply&>(pulled), PullReplyFromProto(header));
  if (pulled.outcome != PullOutcome::kParameters) return pulled;
  ATOLL_RETURN_IF_ERROR(CheckPayload(pulled, pull_request));
  ATOLL_RETURN_IF_ERROR(TakeRange(pull_request, in_parts, pulled));
  return pulled;
}

}  // namespace atl
