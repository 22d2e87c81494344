#include "worker/island/follow.h"

#include <utility>
#include <vector>

#include "client/ipc/encoding.h"
#include "common/status.h"

namespace atl {
namespace {

class Follower {
 public:
  Follower(RankGroup& group, const FollowerFactory& make) : group_(group), make_(make) {}

  RankReply Execute(const RankCall& call) {
    if (call.kind == RankCallKind::kBuild) return Build(call);
    if (call.kind == RankCallKind::kDrop) {
      replica_.reset();
      return {};
    }
    if (replica_ == nullptr)
      return {.status = absl::InternalError("rank 0 uses a replica before it is built")};
    return {.status = Apply(call)};
  }

 private:
  RankReply Build(const RankCall& call) {
    replica_.reset();  // two models may not fit
    auto made = make_(call);
    if (!made.ok()) return {.status = made.status()};
    replica_ = *std::move(made);
    return {.manifest_hash = ManifestHash(replica_->manifest())};
  }

  absl::Status Write(const FragmentLayout& fragment) {
    values_.resize(fragment.elements);
    ATOLL_RETURN_IF_ERROR(group_.BroadcastFromFirst(values_));
    return replica_->WriteFragment(fragment, values_);
  }

  absl::Status Apply(const RankCall& call) {
    switch (call.kind) {
      case RankCallKind::kWriteFragment:
        return Write(call.fragment);
      case RankCallKind::kInnerStep:
        return replica_->InnerStep(call.learning_rate).status();
      case RankCallKind::kSetPartition:
        return replica_->SetPartition(call.partition, call.partitions);
      case RankCallKind::kSeek:
        return replica_->Seek(call.position);
      case RankCallKind::kSaveState:
        return replica_->SaveState(state_);
      case RankCallKind::kLoadState:
        return replica_->LoadState(call.state);
      case RankCallKind::kEvaluate:
        return replica_->Evaluate(call.batches).status();
      case RankCallKind::kBuild:
      case RankCallKind::kDrop:
        break;
    }
    return absl::InternalError("not a call of a replica");
  }

  RankGroup& group_;
  const FollowerFactory& make_;
  std::unique_ptr<Replica> replica_;
  std::vector<float> values_;
  ReplicaState state_;
};

}  // namespace

absl::StatusOr<int> Follow(PeerLink& first, RankGroup& group, const FollowerFactory& make) {
  Follower follower(group, make);
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const Frame frame, first.Next());
    if (frame.type == FrameType::kClose) {
      first.ExpectEnd();
      return ipc::Decoder(frame.body).Number<int32_t>();
    }
    if (frame.type != FrameType::kCall) return absl::InternalError("rank 0 sends what is no call");
    ATOLL_ASSIGN_OR_RETURN(const RankCall call, DecodeRankCall(frame.body));
    ATOLL_RETURN_IF_ERROR(first.Send(FrameType::kReply, EncodeRankReply(follower.Execute(call))));
  }
}

}  // namespace atl
