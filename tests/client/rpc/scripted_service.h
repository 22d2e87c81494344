#ifndef ATOLL_TESTS_CLIENT_RPC_SCRIPTED_SERVICE_H_
#define ATOLL_TESTS_CLIENT_RPC_SCRIPTED_SERVICE_H_

#include <functional>
#include <string>
#include <vector>

#include "atoll/v1/coordinator.grpc.pb.h"
#include "tests/fakes/loopback_server.h"

namespace atl {

/// A data port that answers as a test tells it to. Hooks are set before the first call.
class ScriptedService final : public v1::Coordinator::Service {
 public:
  const std::string& address() const { return server_.address(); }

  std::function<grpc::Status(const v1::JoinRequest&, v1::JoinReply*)> on_join;
  std::function<grpc::Status(grpc::ServerContext*, const v1::PullRequest&,
                             grpc::ServerWriter<v1::PullChunk>*)>
      on_pull;
  std::function<grpc::Status(grpc::ServerContext*, grpc::ServerReader<v1::PushChunk>*, v1::PushReply*)>
      on_push;
  std::function<grpc::Status(grpc::ServerReader<v1::SeedChunk>*)> on_seed;

  std::function<grpc::Status(const v1::HeartbeatRequest&, v1::HeartbeatReply*)> on_heartbeat;

  std::function<grpc::Status(grpc::ServerContext*)> on_leave;

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
    // A copy: a test may set the next script while this call is still sending to a client that has gone.
    const auto script = on_pull;
    return script(context, *request, writer);
  }
  grpc::Status Push(grpc::ServerContext* context, grpc::ServerReader<v1::PushChunk>* reader,
                    v1::PushReply* reply) override {
    const auto script = on_push;
    return script(context, reader, reply);
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
