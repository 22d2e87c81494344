#ifndef ATOLL_WORKER_APP_SERVE_COMPLETION_API_H_
#define ATOLL_WORKER_APP_SERVE_COMPLETION_API_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/http/exchange.h"
#include "common/token_source.h"
#include "worker/app/serve/completer.h"

namespace atl {

struct CompletionApiOptions {
  std::string model;                   // the name that requests give
  TokenSource* key = nullptr;          // that callers must have; null: none
  Duration time_limit = Seconds(300);  // of one request, once the model works on it
};

/// The paths of the server and who may call them, without sockets. Answer() of a quick request may be called
/// on any thread, and of the others on the thread of the model.
class CompletionApi {
 public:
  /// Everything outlives this.
  CompletionApi(CompletionApiOptions options, Completer* completer, const Clock* clock);

  /// Whether the answer needs no work of the model: also of every request that is rejected for its caller,
  /// path or method.
  bool IsQuick(const WebRequest& request) const;
  WebReply Answer(const WebRequest& request) const;

  /// Ends the work in progress, and rejects what comes.
  void Stop() { stopping_ = true; }

 private:
  absl::Status CheckCaller(const WebRequest& request) const;
  absl::StatusOr<WebReply> Route(const WebRequest& request) const;
  absl::StatusOr<WebReply> Complete(const WebRequest& request) const;

  const CompletionApiOptions options_;
  Completer* const completer_;
  const Clock* const clock_;
  const int64_t created_;
  std::atomic<bool> stopping_{false};
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_COMPLETION_API_H_
