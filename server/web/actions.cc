#include "server/web/actions.h"

#include <optional>

#include "atoll/v1/admin.pb.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/encode_admin.h"
#include "server/web/json.h"

namespace atl {

WebReply WebActions::ControlRun(const WebRequest& request, const AdminCaller& caller) {
  v1::ControlRunRequest in;
  if (const absl::Status read = FromJson(request.body, &in); !read.ok()) return ErrorReply(read);
  const auto action = DecodeRunAction(in);
  if (!action.ok()) return ErrorReply(action.status());
  const auto done = admin().ControlRun(caller, *action, in.reason());
  if (!done.ok()) return ErrorReply(done.status());
  v1::ControlRunReply out;
  out.set_message(*done);
  out.set_state(static_cast<v1::RunState>(coordinator_->GetStatus(0).state));
  return MessageReply(out);
}

WebReply WebActions::ControlWorker(const WebRequest& request, const AdminCaller& caller) {
  v1::ControlWorkerRequest in;
  if (const absl::Status read = FromJson(request.body, &in); !read.ok()) return ErrorReply(read);
  const auto call = DecodeControlWorker(in);
  if (!call.ok()) return ErrorReply(call.status());
  const auto done = admin().ControlWorker(caller, *call);
  if (!done.ok()) return ErrorReply(done.status());
  v1::ControlWorkerReply out;
  out.set_message(*done);
  return MessageReply(out);
}

WebReply WebActions::ScaleWorkers(const WebRequest& request, const AdminCaller& caller) {
  v1::ScaleWorkersRequest in;
  if (const absl::Status read = FromJson(request.body, &in); !read.ok()) return ErrorReply(read);
  const auto add = in.has_add() ? std::optional(in.add()) : std::nullopt;
  const auto target = in.has_target() ? std::optional(in.target()) : std::nullopt;
  const auto done = admin().ScaleWorkers(caller, add, target);
  if (!done.ok()) return ErrorReply(done.status());
  v1::ScaleWorkersReply out;
  EncodeScale(*done, &out);
  return MessageReply(out);
}

WebReply WebActions::CreateCheckpoint(const WebRequest& request, const AdminCaller& caller) {
  v1::CreateCheckpointRequest in;
  if (const absl::Status read = FromJson(request.body, &in); !read.ok()) return ErrorReply(read);
  const auto made = admin().CreateCheckpoint(caller, in.name());
  if (!made.ok()) return ErrorReply(made.status());
  v1::CreateCheckpointReply out;
  EncodeCheckpoint(*made, out.mutable_checkpoint());
  return MessageReply(out);
}

}  // namespace atl
