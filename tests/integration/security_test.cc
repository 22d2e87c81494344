// Real programs over mutual TLS: the coordinator, two workers, atollctl; rotation and revocation while they
// run.
#include <signal.h>
#include <sys/stat.h>

#include "client/rpc/channel.h"
#include "common/token_source.h"
#include "gmock/gmock.h"
#include "tests/fakes/dev_certs.h"
#include "tests/fakes/http_get.h"
#include "tests/integration/coordinator_program.h"
#include "tests/integration/crash/synthetic_worker.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SecurityProgramTest : public CoordinatorProgram {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), run_.yaml).ok());
    certs_.Make("--coordinator --worker w0 --worker w1 --worker w2 --admin ann");
  }
  std::vector<std::string> Tls(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "--config",  dir_.File("run.yaml"),          "--tls-cert", certs_.Path("coordinator.pem"),
        "--tls-key", certs_.Path("coordinator.key"), "--tls-ca",   certs_.Path("ca.pem")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ClientSecurityFlags As(const std::string& who) const {
    ClientSecurityFlags flags;
    flags.tls_ca = certs_.Path("ca.pem");
    if (who.empty()) return flags;
    flags.tls_cert = certs_.Path(who + ".pem");
    flags.tls_key = certs_.Path(who + ".key");
    return flags;
  }
  std::unique_ptr<SyntheticWorker> Work(uint32_t index, const ClientSecurityFlags& flags) {
    auto security = ChannelSecurity::Create(flags, &clock_, Logger());
    EXPECT_TRUE(security.ok()) << security.status();
    return std::make_unique<SyntheticWorker>(&run_, &promises_, Address("data"), index, *security);
  }
  Finished Atollctl(const std::vector<std::string>& arguments, const std::string& who = "admin-ann") {
    std::vector<std::string> all = {(ATOLL_BIN_DIR "/atollctl"),
                                    "--admin",
                                    Address("admin"),
                                    "--coordinator",
                                    Address("data"),
                                    "--user",
                                    "somebody",
                                    "--tls-ca",
                                    certs_.Path("ca.pem")};
    if (!who.empty()) {
      for (const char* flag : {"--tls-cert", "--tls-key"}) {
        all.emplace_back(flag);
        all.push_back(certs_.Path(who + (flag == std::string("--tls-cert") ? ".pem" : ".key")));
      }
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunToEnd(all, Seconds(60));
  }
  /// Versions go on from where they are now.
  void AwaitRounds(uint64_t more) {
    const uint64_t from = Version();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Version() < from + more) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << Log();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  uint64_t Version() {
    const Finished status = Atollctl({"status", "--json"});
    if (status.exit_code != 0) return 0;
    const auto parsed = nlohmann::json::parse(status.output, nullptr, false);
    if (parsed.is_discarded() || parsed["fragments"].empty()) return 0;
    return std::stoull(parsed["fragments"][0]["version"].get<std::string>());
  }

  const SyntheticRun run_ = SyntheticRun::Make(1);
  const SystemClock clock_{};
  Promises promises_;
  DevCerts certs_;
};

TEST_F(SecurityProgramTest, TrainsOverMutualTlsAndRotatesEverythingMeanwhile) {
  const auto coordinator = Serve(Tls());
  ASSERT_NE(coordinator, nullptr);
  std::vector<std::unique_ptr<SyntheticWorker>> workers;
  for (uint32_t i = 0; i < kCrashWorkers; ++i) workers.push_back(Work(i, As("worker-w" + std::to_string(i))));
  AwaitRounds(2);
  const Finished denied = Atollctl({"run", "pause"}, "worker-w0");
  EXPECT_EQ(denied.exit_code, 5) << denied.output;
  EXPECT_THAT(denied.output, AllOf(HasSubstr("worker w0"), HasSubstr("an admin's")));
  const Finished nobody = Atollctl({"status"}, "");
  EXPECT_EQ(nobody.exit_code, 3);
  EXPECT_THAT(nobody.output, HasSubstr("--tls-cert"));
  EXPECT_EQ(Atollctl({"run", "pause"}).exit_code, 0);
  EXPECT_EQ(Atollctl({"run", "resume"}).exit_code, 0);
  const Finished events = Atollctl({"events", "--json"});
  EXPECT_THAT(events.output, HasSubstr("ann (certificate, calls itself somebody, 127.0.0.1"));

  // Another CA and everything that it signs, under the running programs.
  certs_.Make("--renew --new-ca --coordinator --worker w0 --worker w1 --worker w2 --admin ann");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (Atollctl({"status"}).exit_code != 0 && std::chrono::steady_clock::now() < deadline) {
  }
  AwaitRounds(2);
  EXPECT_THAT(Log(), HasSubstr("certificates reloaded"));
  for (const auto& worker : workers) EXPECT_EQ(worker->complaint(), "");
  const std::string metrics = HttpGet(PortOf("metrics"), "/metrics");
  EXPECT_THAT(metrics,
              AllOf(HasSubstr("atoll_tls_certificate_not_after_seconds"), HasSubstr("atoll_insecure_bind 0"),
                    HasSubstr("atoll_calls_refused_total{reason=\"permission_denied\"} 1")));
  workers.clear();
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(Seconds(60)), 0) << Log();
}

TEST_F(SecurityProgramTest, TokensThroughTheCommandLineSurviveARestart) {
  const std::vector<std::string> server_only = {"--config",   dir_.File("run.yaml"),
                                                "--tls-cert", certs_.Path("coordinator.pem"),
                                                "--tls-key",  certs_.Path("coordinator.key")};
  const std::string admin = dir_.File("data/access/admin.token");
  const std::string worker = dir_.File("w0.token");
  std::string id;
  for (int life = 0; life < 2; ++life) {
    const auto coordinator = Serve(server_only);
    ASSERT_NE(coordinator, nullptr);
    const auto as_admin = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"--token-file", admin});
      return Atollctl(arguments, "");
    };
    if (life == 0) {
      const Finished made =
          as_admin({"tokens", "create", "--role", "worker", "--name", "w0", "--out", worker});
      ASSERT_EQ(made.exit_code, 0) << made.output;
      id = made.output.substr(made.output.find("token ") + 6, 8);
      struct stat info = {};
      ASSERT_EQ(::stat(worker.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777U, 0600U);
      EXPECT_THAT(made.output, Not(HasSubstr(*ReadTokenFile(worker))));
    }
    const Finished list = as_admin({"tokens", "list"});
    EXPECT_THAT(list.output, AllOf(HasSubstr(id), HasSubstr("w0"), HasSubstr("good")));
    const Finished denied = Atollctl({"--token-file", worker, "status"}, "");
    EXPECT_EQ(denied.exit_code, 5);
    EXPECT_THAT(denied.output, HasSubstr("an observer's or an admin's"));
    const Finished missing = Atollctl({"status"}, "");
    EXPECT_EQ(missing.exit_code, 5);
    EXPECT_THAT(missing.output, HasSubstr("--token-file"));
    if (life == 1) {
      EXPECT_EQ(as_admin({"tokens", "revoke", id}).exit_code, 0);
      EXPECT_THAT(Atollctl({"--token-file", worker, "status"}, "").output, HasSubstr("revoked"));
      EXPECT_THAT(as_admin({"events"}).output,
                  AllOf(HasSubstr("admin (token"), HasSubstr("revoke token '" + id)));
    }
    coordinator->Signal(SIGTERM);
    EXPECT_EQ(coordinator->Wait(Seconds(60)), 0) << Log();
  }
}

TEST_F(SecurityProgramTest, SaysLoudlyThatItIsInsecureAndRejectsToBeSoUnasked) {
  const Finished rejected = Run({"--config", dir_.File("run.yaml"), "--listen", "0.0.0.0:0"});
  EXPECT_EQ(rejected.exit_code, 2);
  EXPECT_THAT(rejected.output, AllOf(HasSubstr("--tls-cert"), HasSubstr("--insecure-bind")));
  EXPECT_FALSE(FileExists(dir_.File("data")));
  const Finished half =
      Run({"--config", dir_.File("run.yaml"), "--tls-cert", certs_.Path("coordinator.pem")});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.output, HasSubstr("--tls-key"));
  const auto coordinator =
      Serve({"--config", dir_.File("run.yaml"), "--listen", "0.0.0.0:0", "--insecure-bind"});
  ASSERT_NE(coordinator, nullptr);
  EXPECT_THAT(Log(), HasSubstr("INSECURE: other machines reach 0.0.0.0:0"));
  EXPECT_THAT(HttpGet(PortOf("metrics"), "/metrics"), HasSubstr("atoll_insecure_bind 1"));
  const Finished status =
      RunToEnd({(ATOLL_BIN_DIR "/atollctl"), "--admin", Address("admin"), "status", "--json"}, Seconds(60));
  EXPECT_THAT(status.output, HasSubstr("INSECURE"));
}

TEST_F(SecurityProgramTest, TheLauncherHandsItsWorkersWhatLetsThemIn) {
  // A program that shows what it was given and stays.
  const std::string program = dir_.File("worker.sh");
  ASSERT_TRUE(WriteFileAtomically(program, "#!/bin/sh\necho \"$@\"\nexec sleep 1000\n", 0755).ok());
  const Finished needs = Run(Tls({"--launcher", "process", "--worker-command", program}));
  EXPECT_EQ(needs.exit_code, 2);
  EXPECT_THAT(needs.output, HasSubstr("--worker-arg=--tls-cert="));
  const auto coordinator = Serve(Tls({"--tls-client-auth", "optional", "--launcher", "process",
                                      "--worker-command", program, "--launch-workers", "1"}));
  ASSERT_NE(coordinator, nullptr);
  const std::string log = dir_.File("data/workers/w0.log");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string given;
  while (given.empty() && std::chrono::steady_clock::now() < deadline) given = ReadFile(log).value_or("");
  const std::string token = dir_.File("data/access/launched/w0.token");
  EXPECT_THAT(given,
              AllOf(HasSubstr("--tls-ca " + certs_.Path("ca.pem")), HasSubstr("--token-file " + token)));
  EXPECT_THAT(given, Not(HasSubstr(*ReadTokenFile(token))));
  // What it was given lets it in, under its own name.
  ClientSecurityFlags flags = As("");
  flags.token_file = token;
  const auto security = *ChannelSecurity::Create(flags, &clock_, Logger());
  GrpcConnection connection({.address = Address("data"), .security = security},
                            MakeChannel({.address = Address("data"), .security = security}), &clock_);
  EXPECT_TRUE(connection.Join({.worker = "w0", .secret = "0123456789abcdef"}).ok());
  EXPECT_TRUE(
      absl::IsPermissionDenied(connection.Join({.worker = "w1", .secret = "0123456789abcdef"}).status()));
  coordinator->Signal(SIGTERM);
  EXPECT_EQ(coordinator->Wait(Seconds(60)), 0) << Log();
}

}  // namespace
}  // namespace atl
