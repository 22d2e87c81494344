// Who gets in, over real sockets, with real certificates.
#include <future>

#include "gmock/gmock.h"
#include "tests/server/rpc/secure_fixture.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using SecurityTest = SecureFixture;

/// Calls every method of the service with an empty message, as whoever the channel is; by name, what came.
std::map<std::string, absl::Status> CallAll(const google::protobuf::ServiceDescriptor& service,
                                            const std::shared_ptr<grpc::Channel>& channel,
                                            const ChannelSecurity& security) {
  std::map<std::string, absl::Status> answers;
  grpc::GenericStub stub(channel);
  for (int i = 0; i < service.method_count(); ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    security.Authorize(context);
    const grpc::ByteBuffer request(nullptr, 0);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/" + service.full_name() + "/" + service.method(i)->name(), grpc::StubOptions(),
                   &request, &reply, [&](grpc::Status status) { done.set_value(std::move(status)); });
    answers[service.method(i)->name()] = StatusFromGrpc(done.get_future().get());
  }
  return answers;
}

const google::protobuf::ServiceDescriptor& AdminApi() {
  return *v1::GetStatusRequest::descriptor()->file()->FindServiceByName("Admin");
}
const google::protobuf::ServiceDescriptor& DataApi() {
  return *v1::JoinRequest::descriptor()->file()->FindServiceByName("Coordinator");
}

absl::StatusOr<v1::CreateTokenReply> CreateToken(v1::Admin::Stub& admin, grpc::ClientContext& context,
                                                 const std::string& role, const std::string& name) {
  v1::CreateTokenRequest request;
  request.set_role(role);
  request.set_name(name);
  v1::CreateTokenReply reply;
  const absl::Status status = StatusFromGrpc(admin.CreateToken(&context, request, &reply));
  if (!status.ok()) return status;
  return reply;
}

TEST_F(SecurityTest, AWorkersCertificateIsGoodForItsOwnNameOnly) {
  ServeTls();
  EXPECT_TRUE(Join(As("worker-w1"), "w1").ok());
  const absl::Status other = Join(As("worker-w1"), "w2");
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(std::string(other.message()),
              AllOf(HasSubstr("worker w1"), HasSubstr("worker 'w2'"), HasSubstr("--name w1")));
  EXPECT_TRUE(Join(As("worker-w1"), "observer-1", v1::ROLE_OBSERVER).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Join(As("worker-w1"), "observer-1")));
  EXPECT_TRUE(Join(As("observer-prometheus"), "observer-2", v1::ROLE_OBSERVER).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Join(As("observer-prometheus"), "w9", v1::ROLE_OBSERVER)));
  EXPECT_TRUE(absl::IsPermissionDenied(Join(As("admin-ann"), "w1")));
  EXPECT_EQ(rejected_, 4);
}

TEST_F(SecurityTest, NobodySpeaksForAnotherWorkerInAnyCall) {
  ServeTls();
  const auto security = Secure(As("worker-w2"));
  const auto stub = v1::Coordinator::NewStub(Connect(*security, server_->data_address()));
  const auto denied = [](const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  };
  v1::HeartbeatRequest beat;
  *beat.mutable_worker() = Self();  // w1
  v1::HeartbeatReply beat_reply;
  EXPECT_TRUE(denied(stub->Heartbeat(Context().get(), beat, &beat_reply)));
  v1::GetPushStatusRequest ask;
  *ask.mutable_worker() = Self();
  v1::GetPushStatusReply ask_reply;
  EXPECT_TRUE(denied(stub->GetPushStatus(Context().get(), ask, &ask_reply)));
  v1::LeaveRequest leave;
  *leave.mutable_worker() = Self();
  v1::LeaveReply leave_reply;
  EXPECT_TRUE(denied(stub->Leave(Context().get(), leave, &leave_reply)));
  v1::PullRequest pull;
  *pull.mutable_worker() = Self();
  auto context = Context();
  const auto reader = stub->Pull(context.get(), pull);
  v1::PullChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(denied(reader->Finish()));
  auto push_context = Context();
  v1::PushReply push_reply;
  const auto push = stub->Push(push_context.get(), &push_reply);
  push->Write(PushHeaderOf(6));
  EXPECT_TRUE(denied(push->Finish()));
  auto seed_context = Context();
  v1::SeedReply seed_reply;
  v1::SeedChunk header;
  *header.mutable_header()->mutable_worker() = Self();
  auto* tensor = header.mutable_header()->mutable_manifest()->add_tensors();
  tensor->set_name("a");
  tensor->add_shape(4);
  const auto seed = stub->SeedParameters(seed_context.get(), &seed_reply);
  seed->Write(header);
  EXPECT_TRUE(denied(seed->Finish()));
  EXPECT_EQ(coordinator_.open_pushes, 0);
}

TEST_F(SecurityTest, NoAdminCallIsForAWorker) {
  ServeTls();
  const auto security = Secure(As("worker-w1"));
  const auto answers = CallAll(AdminApi(), Connect(*security, server_->admin_address()), *security);
  ASSERT_GE(answers.size(), 18u);
  for (const auto& [method, status] : answers) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << method << ": " << status;
  }
}

TEST_F(SecurityTest, AnObserverLooksAndAnAdminDoes) {
  ServeTls();
  const auto observer = Secure(As("observer-prometheus"));
  const auto seen = CallAll(AdminApi(), Connect(*observer, server_->admin_address()), *observer);
  const std::set<std::string> looks = {
      "GetStatus",   "ListWorkers",     "GetMetrics", "ExportMetrics",     "ListConfigs",
      "GetLauncher", "ListCheckpoints", "ListRounds", "ListConfirmations", "ReadParameters"};
  for (const auto& [method, status] : seen) {
    EXPECT_EQ(absl::IsPermissionDenied(status), !looks.contains(method)) << method << ": " << status;
  }
  // A checkpoint's files are all read first: that is work.
  v1::ReadParametersRequest request;
  request.set_checkpoint("one");
  const auto context = Context();
  const auto stub = v1::Admin::NewStub(Connect(*observer, server_->admin_address()));
  const auto stream = stub->ReadParameters(context.get(), request);
  v1::ParametersChunk message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const auto admin = Secure(As("admin-ann"));
  for (const auto& [method, status] :
       CallAll(AdminApi(), Connect(*admin, server_->admin_address()), *admin)) {
    EXPECT_FALSE(absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) << method;
  }
}

TEST_F(SecurityTest, WhoBringsNothingIsRejectedInEveryCall) {
  ServeTokens();
  const auto nobody = ChannelSecurity::Plain();
  for (const auto& [method, status] :
       CallAll(AdminApi(), Connect(*nobody, server_->admin_address()), *nobody)) {
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << method << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--token-file"));
  }
  for (const auto& [method, status] :
       CallAll(DataApi(), Connect(*nobody, server_->data_address()), *nobody)) {
    // Pull says first what is wrong with the message, which is not worth a look at who sent it.
    const bool unread = method == "Pull" && absl::IsInvalidArgument(status);
    EXPECT_TRUE(unread || absl::IsUnauthenticated(status)) << method << ": " << status;
  }
}

TEST_F(SecurityTest, ARevokedTokenIsRejectedAtOnce) {
  ServeTokens();
  const auto security = Secure(WithToken({}, Role::kWorker, "w1"));
  const auto stub = v1::Coordinator::NewStub(Connect(*security, server_->data_address()));
  v1::JoinReply reply;
  const auto join = [&](const std::string& name) {
    return StatusFromGrpc(stub->Join(ContextOf(*security).get(), JoinAs(name), &reply));
  };
  EXPECT_TRUE(join("w1").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(join("w2")));
  ASSERT_TRUE(tokens_->Revoke(token_id_).ok());
  const absl::Status after = join("w1");
  EXPECT_TRUE(absl::IsUnauthenticated(after)) << after;
  EXPECT_THAT(std::string(after.message()), AllOf(HasSubstr(token_id_), HasSubstr("revoked")));
}

TEST_F(SecurityTest, TokensAreMadeListedAndRevokedByProvenOperatorsAndAudited) {
  ServeTls(ClientCertificates::kNone);
  EXPECT_TRUE(absl::IsUnauthenticated(GetStatus(As(""))));
  const auto admin = Secure(WithToken(As(""), Role::kAdmin, "ann"));
  const auto stub = v1::Admin::NewStub(Connect(*admin, server_->admin_address()));
  const auto made = CreateToken(*stub, *ContextOf(*admin), "worker", "w1");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->warning(), "");
  ClientSecurityFlags worker = As("");
  worker.token_file = dir_.File("worker-token");
  ASSERT_TRUE(WriteFileAtomically(worker.token_file, made->token()).ok());
  EXPECT_TRUE(Join(worker, "w1").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(GetStatus(worker)));
  v1::ListTokensReply listed;
  ASSERT_TRUE(stub->ListTokens(ContextOf(*admin).get(), v1::ListTokensRequest(), &listed).ok());
  EXPECT_EQ(listed.tokens_size(), 2);
  v1::RevokeTokenRequest revoke;
  revoke.set_id(made->info().id());
  v1::TokenInfo revoked;
  ASSERT_TRUE(stub->RevokeToken(ContextOf(*admin).get(), revoke, &revoked).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(Join(worker, "w1")));
  const auto audit = coordinator_.admin_control.asked();
  ASSERT_EQ(audit.size(), 2u);
  EXPECT_THAT(audit[0].what, AllOf(HasSubstr("token_create"), HasSubstr(made->info().id())));
  EXPECT_THAT(audit[1].what, HasSubstr("token_revoke"));
  EXPECT_EQ(audit[1].caller.proven, "ann");
  EXPECT_EQ(audit[1].caller.how, "token");
}

TEST_F(SecurityTest, WhereCertificatesAreRequiredANewTokenComesWithAWarning) {
  ServeTls();
  const auto admin = Secure(WithToken(As("worker-w1"), Role::kAdmin, "ann"));
  const auto stub = v1::Admin::NewStub(Connect(*admin, server_->admin_address()));
  const auto made = CreateToken(*stub, *ContextOf(*admin), "observer", "grafana");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->warning(), HasSubstr("--tls-client-auth optional"));
}

TEST_F(SecurityTest, AnOpenRunMakesNoTokensForWhoIsNotProven) {
  RpcServerOptions options = Options();
  const auto open = MakeOpenPolicy(tokens_.get());
  options.security.access = open.get();
  options.security.tokens = tokens_.get();
  Serve(options);
  EXPECT_TRUE(GetStatus({}).ok());
  const absl::Status made = CreateToken(*admin_, *Context(), "admin", "mallory").status();
  EXPECT_TRUE(absl::IsPermissionDenied(made)) << made;
  EXPECT_THAT(std::string(made.message()), HasSubstr("access/admin.token"));
  EXPECT_TRUE(tokens_->List().empty());
  server_.reset();
}

}  // namespace
}  // namespace atl
