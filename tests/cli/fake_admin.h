#ifndef ATOLL_TESTS_CLI_FAKE_ADMIN_H_
#define ATOLL_TESTS_CLI_FAKE_ADMIN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "atoll/v1/admin.grpc.pb.h"
#include "common/mutex.h"
#include "grpcpp/grpcpp.h"
#include "protos/wire/status.h"
#include "tests/fakes/loopback_server.h"

namespace atl {

/// The admin port as a test wants it: every call notes who asked for what and answers with what the test has
/// put there, or with `rejection`. On a free port of this machine. Set the answers before the calls.
class FakeAdmin final : public v1::Admin::Service {
 public:
  const std::string& address() const { return server_.address(); }
  /// "USER request fields", one a call.
  std::vector<std::string> calls() const {
    const MutexLock lock(&mutex_);
    return calls_;
  }

  absl::Status rejection;
  v1::GetStatusReply status;
  std::vector<v1::GetStatusReply> earlier_statuses;  // the answers to the first queries; then `status`
  v1::ListWorkersReply workers;
  v1::GetMetricsReply metrics;
  v1::ListConfigsReply configs;
  v1::LauncherStatus launcher;
  v1::ListTokensReply tokens;
  v1::ConfirmationPage confirmations;
  bool page_repeats = false;  // names "a" as the place of every next page
  v1::ControlRunReply run_reply;
  v1::ExtendRunReply extend_reply;
  v1::SetConfigReply set_reply;
  v1::ControlWorkerReply worker_reply;
  v1::ScaleWorkersReply scale_reply;
  v1::CreateCheckpointReply created;
  v1::ListCheckpointsReply checkpoints;
  v1::RestoreCheckpointReply restored;
  std::vector<v1::VerifyProgress> verdicts;
  std::vector<v1::MetricPoint> points;

#define ATOLL_FAKE_CALL(Method, Request, Reply, answer)                                                      \
  grpc::Status Method(grpc::ServerContext* context, const v1::Request* request, v1::Reply* reply) override { \
    *reply = answer;                                                                                         \
    return Note(*context, *request);                                                                         \
  }
  ATOLL_FAKE_CALL(GetStatus, GetStatusRequest, GetStatusReply, NextStatus())
  ATOLL_FAKE_CALL(ListWorkers, ListWorkersRequest, ListWorkersReply, workers)
  ATOLL_FAKE_CALL(GetMetrics, GetMetricsRequest, GetMetricsReply, metrics)
  ATOLL_FAKE_CALL(ListConfigs, ListConfigsRequest, ListConfigsReply, configs)
  ATOLL_FAKE_CALL(GetLauncher, GetLauncherRequest, LauncherStatus, launcher)
  ATOLL_FAKE_CALL(ListTokens, ListTokensRequest, ListTokensReply, tokens)
  ATOLL_FAKE_CALL(ControlRun, ControlRunRequest, ControlRunReply, run_reply)
  ATOLL_FAKE_CALL(ExtendRun, ExtendRunRequest, ExtendRunReply, extend_reply)
  ATOLL_FAKE_CALL(SetConfig, SetConfigRequest, SetConfigReply, set_reply)
  ATOLL_FAKE_CALL(ControlWorker, ControlWorkerRequest, ControlWorkerReply, worker_reply)
  ATOLL_FAKE_CALL(ScaleWorkers, ScaleWorkersRequest, ScaleWorkersReply, scale_reply)
  ATOLL_FAKE_CALL(CreateCheckpoint, CreateCheckpointRequest, CreateCheckpointReply, created)
  ATOLL_FAKE_CALL(ListCheckpoints, ListCheckpointsRequest, ListCheckpointsReply, checkpoints)
  ATOLL_FAKE_CALL(RestoreCheckpoint, RestoreCheckpointRequest, RestoreCheckpointReply, restored)
  ATOLL_FAKE_CALL(DeleteCheckpoint, DeleteCheckpointRequest, DeleteCheckpointReply,
                  v1::DeleteCheckpointReply())
#undef ATOLL_FAKE_CALL

  /// One confirmation a page.
  grpc::Status ListConfirmations(grpc::ServerContext* context, const v1::ListConfirmationsRequest* request,
                                 v1::ConfirmationPage* reply) override {
    int i = 0;
    while (i < confirmations.confirmations_size() && request->has_after() &&
           confirmations.confirmations(i).worker() <= request->after().worker()) {
      ++i;
    }
    reply->set_run_id(confirmations.run_id());
    if (i < confirmations.confirmations_size()) {
      *reply->add_confirmations() = confirmations.confirmations(i);
      reply->mutable_next()->set_worker(page_repeats ? "a" : confirmations.confirmations(i).worker());
    }
    return Note(*context, *request);
  }
  grpc::Status Verify(grpc::ServerContext* context, const v1::VerifyRequest* request,
                      grpc::ServerWriter<v1::VerifyProgress>* writer) override {
    for (const auto& verdict : verdicts) writer->Write(verdict);
    return Note(*context, *request);
  }
  grpc::Status ExportMetrics(grpc::ServerContext* context, const v1::ExportMetricsRequest* request,
                             grpc::ServerWriter<v1::MetricPoint>* writer) override {
    for (const auto& point : points) writer->Write(point);
    return Note(*context, *request);
  }

 private:
  const v1::GetStatusReply& NextStatus() {
    const MutexLock lock(&mutex_);
    return asked_ < earlier_statuses.size() ? earlier_statuses[asked_++] : status;
  }

  grpc::Status Note(const grpc::ServerContext& context, const google::protobuf::Message& request) {
    const auto user = context.client_metadata().find("atoll-user");
    const std::string name =
        user == context.client_metadata().end() ? "-" : std::string(user->second.data(), user->second.size());
    const MutexLock lock(&mutex_);
    calls_.push_back(name + " " + request.ShortDebugString());
    return StatusToGrpc(rejection);
  }

  mutable Mutex mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  size_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  LoopbackServer server_{this};
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLI_FAKE_ADMIN_H_
