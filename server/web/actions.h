#ifndef ATOLL_SERVER_WEB_ACTIONS_H_
#define ATOLL_SERVER_WEB_ACTIONS_H_

#include "common/http/exchange.h"
#include "server/admin/admin_control.h"
#include "server/coordinator.h"

namespace atl {

/// The admin port's requests that change something, as JSON. The caller is known to be an admin. Thread-safe;
/// a call may block as the coordinator's do.
class WebActions {
 public:
  /// `coordinator` outlives it.
  explicit WebActions(Coordinator* coordinator) : coordinator_(coordinator) {}

  WebReply ControlRun(const WebRequest& request, const AdminCaller& caller);
  WebReply ControlWorker(const WebRequest& request, const AdminCaller& caller);
  WebReply ScaleWorkers(const WebRequest& request, const AdminCaller& caller);
  WebReply CreateCheckpoint(const WebRequest& request, const AdminCaller& caller);

 private:
  AdminControl& admin() { return coordinator_->admin(); }

  Coordinator* const coordinator_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_ACTIONS_H_
