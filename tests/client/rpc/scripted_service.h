#ifndef ATOLL_TESTS_CLIENT_RPC_SCRIPTED_SERVICE_H_
#define ATOLL_TESTS_CLIENT_RPC_SCRIPTED_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/mutex.h"
#include "tests/fakes/loopback_server.h"

namespace atl {

template <typename Signature>
class Script;

/// What a service does. A test may set the next script while a call whose client has given up still begins,
/// or is in the middle of this one. Thread-safe.
template <typename Result, typename... Arguments>
class Script<Result(Arguments...)> {
 public:
  Script& operator=(std::function<Result(Arguments...)> body) {
    auto next = std::make_shared<const std::function<Result(Arguments...)>>(std::move(body));
    MutexLock lock(&mutex_);
    body_.swap(next);
    return *this;
  }
  Result operator()(Arguments... arguments) {
    const auto body = Body();
    return (*body)(arguments...);
  }

 private:
  std::shared_ptr<const std::function<Result(Arguments...)>> Body() {
    MutexLock lock(&mutex_);
    return body_;
  }

  Mutex mutex_;
  std::shared_ptr<const std::function<Result(Arguments...)>> body_ ABSL_GUARDED_BY(mutex_);
};

/// A data port that answers as a test tells it to. A script is set before the first call of its kind.
class ScriptedService final : public v1::Coordinator::Service {
 public:
  const std::string& address() const { return server_.address(); }

  Script<grpc::Status(const v1::JoinRequest&, v1::JoinReply*)> on_join;
  Script<grpc::Status(grpc::ServerContext*, const v1::PullRequest&, grpc::ServerWriter<v1::PullChunk>*)>
      on_pull;
  Script<grpc::Status(grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*)> on_push;
  Script<grpc::Status(grpc::ServerReader<v1::SeedChunk>*)> on_seed;
  Script<grpc::Status(const v1::HeartbeatRequest&, v1::HeartbeatReply*)> on_heartbeat;
  Script<grpc::Status(grpc::ServerContext*)> on_leave;

  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest*, v1::LeaveReply*) override {
    return on_leave(context);
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatReply* reply) override {
    return on_heartbeat(*request, reply);
  }
  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest* request, v1::JoinReply* reply) override {
    return on_join(*request, reply);
  }
  grpc::Status Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullChunk>* writer) override {
    return on_pull(context, *request, writer);
  }
  grpc::Status Push(grpc::ServerContext* context, grpc::ServerReader<v1::PushChunk>* reader,
                    v1::PushReply* reply) override {
    return on_push(context, reader, reply);
  }
  grpc::Status SeedParameters(grpc::ServerContext*, grpc::ServerReader<v1::SeedChunk>* reader,
                              v1::SeedReply*) override {
    return on_seed(reader);
  }

 private:
  LoopbackServer server_{this};
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_RPC_SCRIPTED_SERVICE_H_
