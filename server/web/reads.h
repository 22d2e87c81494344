#ifndef ATOLL_SERVER_WEB_READS_H_
#define ATOLL_SERVER_WEB_READS_H_

#include "common/clock.h"
#include "common/http/exchange.h"
#include "server/coordinator.h"
#include "server/web/run_history.h"

namespace atl {

/// The replies of docs/reference/web.md to requests that change nothing. Thread-safe; a call may block as the
/// coordinator's do.
class WebReads {
 public:
  /// All outlive it.
  WebReads(Coordinator* coordinator, const Clock* clock, RunHistory* history)
      : coordinator_(coordinator), clock_(clock), history_(history) {}

  WebReply Status(const WebRequest& request);
  WebReply Workers(const WebRequest& request);
  WebReply Metrics(const WebRequest& request);
  WebReply Rounds(const WebRequest& request);
  WebReply Events(const WebRequest& request);
  WebReply Curve(const WebRequest& request);
  WebReply Traffic(const WebRequest& request);
  WebReply Launched(const WebRequest& request);
  WebReply Checkpoints(const WebRequest& request);

 private:
  AdminControl& admin() { return coordinator_->admin(); }

  Coordinator* const coordinator_;
  const Clock* const clock_;
  RunHistory* const history_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_READS_H_
