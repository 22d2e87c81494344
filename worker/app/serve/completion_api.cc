#include "worker/app/serve/completion_api.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/human.h"
#include "common/status.h"
#include "worker/app/serve/completion_reply.h"

namespace atl {
namespace {

constexpr char kCompletionsPath[] = "/v1/completions";
constexpr char kModelsPath[] = "/v1/models";
constexpr char kBearer[] = "Bearer ";

int64_t SecondsSince1970(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

WebReply JsonReply(std::string body) {
  WebReply reply;
  reply.body = std::move(body);
  return reply;
}

WebReply WrongMethod(const std::string& path, const std::string& allowed) {
  WebReply reply = ApiError(absl::InvalidArgumentError(absl::StrCat(path, " takes ", allowed, " only")));
  reply.status = 405;
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

}  // namespace

CompletionApi::CompletionApi(CompletionApiOptions options, Completer* completer, const Clock* clock)
    : options_(std::move(options)),
      completer_(completer),
      clock_(clock),
      created_(SecondsSince1970(clock->WallNow())) {}

absl::Status CompletionApi::CheckCaller(const WebRequest& request) const {
  // A browser names the page that calls, also one whose name was made to point to this machine.
  if (request.origin) {
    return absl::PermissionDeniedError("web pages may not call this server (header Origin)");
  }
  if (options_.key == nullptr) return absl::OkStatus();
  const std::string& given = request.authorization;
  if (absl::StartsWith(given, kBearer) &&
      ConstantTimeEqual(given.substr(sizeof(kBearer) - 1), options_.key->Current())) {
    return absl::OkStatus();
  }
  return absl::UnauthenticatedError("this server needs its key: send the header 'Authorization: Bearer KEY'");
}

bool CompletionApi::IsQuick(const WebRequest& request) const {
  return request.path != kCompletionsPath || request.method != "POST" || !CheckCaller(request).ok();
}

absl::StatusOr<WebReply> CompletionApi::Complete(const WebRequest& request) const {
  if (!absl::StartsWithIgnoreCase(request.content_type, "application/json")) {
    return absl::InvalidArgumentError("send the header 'Content-Type: application/json'");
  }
  ATOLL_ASSIGN_OR_RETURN(const CompletionRequest wanted,
                         ParseCompletionRequest(request.body, completer_->bounds()));
  if (!wanted.model.empty() && wanted.model != options_.model) {
    return absl::NotFoundError(
        absl::StrFormat("the model '%s' does not exist; this server has '%s'", wanted.model, options_.model));
  }
  const MonoTime end = clock_->Now() + options_.time_limit;
  const auto check = [&]() -> absl::Status {
    if (stopping_) return absl::UnavailableError("the server stops");
    if (clock_->Now() < end) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrFormat(
        "the request took longer than %s (--timeout); send fewer prompts or ask for fewer tokens",
        HumanDuration(options_.time_limit)));
  };
  const auto completions = completer_->Complete(wanted, check);
  if (absl::IsFailedPrecondition(completions.status())) {
    // Not the caller's fault.
    return absl::InternalError(std::string(completions.status().message()));
  }
  if (!completions.ok()) return completions.status();
  return JsonReply(CompletionJson(options_.model, SecondsSince1970(clock_->WallNow()), wanted,
                                  completer_->tokenizer(), *completions));
}

absl::StatusOr<WebReply> CompletionApi::Route(const WebRequest& request) const {
  if (request.path == "/healthz") {
    if (!IsRead(request)) return WrongMethod(request.path, "GET");
    WebReply reply;
    reply.content_type = "text/plain; charset=utf-8";
    reply.body = "ok\n";
    return reply;
  }
  ATOLL_RETURN_IF_ERROR(CheckCaller(request));
  if (request.path == kCompletionsPath) {
    if (request.method != "POST") return WrongMethod(request.path, "POST");
    return Complete(request);
  }
  const std::string one = absl::StrCat(kModelsPath, "/", options_.model);
  if (request.path == kModelsPath || request.path == one) {
    if (!IsRead(request)) return WrongMethod(request.path, "GET");
    const uint32_t context = completer_->bounds().context;
    return JsonReply(request.path == one ? ModelJson(options_.model, created_, context)
                                         : ModelsJson(options_.model, created_, context));
  }
  WebReply reply = ApiError(absl::InvalidArgumentError(absl::StrFormat(
      "unknown path %s; this server has %s, %s and /healthz", request.path, kCompletionsPath, kModelsPath)));
  reply.status = 404;
  return reply;
}

WebReply CompletionApi::Answer(const WebRequest& request) const {
  auto reply = Route(request);
  return reply.ok() ? *std::move(reply) : ApiError(reply.status());
}

}  // namespace atl
