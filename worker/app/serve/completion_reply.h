#ifndef ATOLL_WORKER_APP_SERVE_COMPLETION_REPLY_H_
#define ATOLL_WORKER_APP_SERVE_COMPLETION_REPLY_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/http/exchange.h"
#include "worker/app/serve/completer.h"
#include "worker/app/serve/completion_request.h"

namespace atl {

/// The body of an answer, as OpenAI's API has it. `created`: seconds since 1970.
std::string CompletionJson(const std::string& model, int64_t created, const CompletionRequest& request,
                           const Tokenizer* tokenizer, std::span<const Completion> completions);

/// The body of GET /v1/models, with the one model.
std::string ModelsJson(const std::string& model, int64_t created, uint32_t context);
/// And of GET /v1/models/MODEL.
std::string ModelJson(const std::string& model, int64_t created, uint32_t context);

/// {"error": {"message": ..., "type": ..., "param": null, "code": null}}, of an error without a status.
std::string ApiErrorJson(int http_status, const std::string& message);

/// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}} with the HTTP status of this error.
WebReply ApiError(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_SERVE_COMPLETION_REPLY_H_
