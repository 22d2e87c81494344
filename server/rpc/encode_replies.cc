#include "protos/wire/manifest.h"
#include "protos/wire/run_state.h"
#include "server/rpc/encode.h"

namespace atl {

PullReply ReplyOf(const PullResult& result) {
  PullReply reply{.outcome = result.outcome, .state = result.state, .waiting_for = result.waiting_for};
  if (result.outcome != PullOutcome::kParameters) return reply;
  const Snapshot& snapshot = *result.snapshot;
  reply.epoch = snapshot.epoch;
  reply.version = snapshot.version;
  reply.codec = snapshot.codec;
  reply.elements = snapshot.elements;
  reply.payload_bytes = snapshot.payload.size();
  reply.published = snapshot.published;
  reply.head = snapshot.version;
  reply.plan = result.plan;
  if (result.delta == nullptr) return reply;
  const PublishedDelta& delta = *result.delta;
  reply.version = delta.to;
  reply.codec = delta.codec;
  reply.payload_bytes = delta.payload.size();
  reply.published = delta.published;
  reply.delta_base = delta.from;
  return reply;
}

void EncodeSeed(const SeedResult& result, v1::SeedReply* reply) {
  FragmentHeadsToProto(result.fragments, reply->mutable_fragments());
  for (const ContentHash& hash : result.published) *reply->add_published() = ContentHashToProto(hash);
}

}  // namespace atl
