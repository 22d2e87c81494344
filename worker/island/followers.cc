#include "worker/island/followers.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "client/ipc/encoding.h"
#include "common/status.h"

namespace atl {

absl::Status Followers::Tell(const RankCall& call) {
  const std::string bytes = EncodeRankCall(call);
  for (const auto& link : links_) ATOLL_RETURN_IF_ERROR(link->Send(FrameType::kCall, bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RankReply>> Followers::Replies() {
  std::vector<RankReply> replies;
  for (const auto& link : links_) {
    ATOLL_ASSIGN_OR_RETURN(const Frame frame, link->Next());
    if (frame.type != FrameType::kReply) {
      return absl::InternalError(absl::StrFormat("rank %d answers a call with a frame of type %d",
                                                 link->rank(), static_cast<int>(frame.type)));
    }
    ATOLL_ASSIGN_OR_RETURN(RankReply reply, DecodeRankReply(frame.body));
    replies.push_back(std::move(reply));
  }
  return replies;
}

absl::Status Followers::Finish(const absl::Status& own) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<RankReply> replies, Replies());
  // Aborted: it did not fail itself.
  if (!own.ok() && !absl::IsAborted(own)) return own;
  for (size_t i = 0; i < replies.size(); ++i) {
    const absl::Status& status = replies[i].status;
    if (status.ok() || absl::IsAborted(status)) continue;
    return absl::Status(status.code(),
                        absl::StrFormat("rank %d: %s", links_[i]->rank(), std::string(status.message())));
  }
  return own;
}

void Followers::Close(int exit_code, Duration limit) {
  ipc::Encoder out;
  out.Number(static_cast<int32_t>(exit_code));
  const std::string code = out.Take();
  for (const auto& link : links_) {
    link->ExpectEnd();
    (void)link->Send(FrameType::kClose, code);
  }
  const MonoTime deadline = SteadyNow() + limit;
  for (const auto& link : links_) link->AwaitEnd(std::max(deadline - SteadyNow(), Duration(0)));
}

}  // namespace atl
