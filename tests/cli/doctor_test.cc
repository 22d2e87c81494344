#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli/doctor/check.h"
#include "cli/doctor/disk.h"
#include "cli/doctor/host.h"
#include "cli/doctor/network.h"
#include "cli/doctor/run_directory.h"
#include "cli/doctor/tokens.h"
#include "common/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/atollctl.h"
#include "tests/cli/fake_admin.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Judge, Host) {
  EXPECT_EQ(JudgeProcessor("flags\t\t: fpu avx2 avx512f amx_bf16\n", 8).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeProcessor("flags : avx2 amx_bf16\n", 8).text, HasSubstr("8 threads, AVX2, AMX bf16"));
  EXPECT_THAT(JudgeProcessor("flags : avx2\n", 1).text, HasSubstr("1 thread, AVX2"));
  EXPECT_EQ(JudgeProcessor("flags : sse2\n", 2).verdict, Verdict::kWarn);
  EXPECT_EQ(JudgeProcessor("Features : fp asimd\n", 2).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeOpenFiles(65536, 65536).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeOpenFiles(1024, 65536).advice, HasSubstr("ulimit -n 4096"));
  EXPECT_EQ(JudgeBlas("libblas.so.3", 2).verdict, Verdict::kOk);
  EXPECT_THAT(JudgeBlas("libblas.so.3", std::nullopt).advice, HasSubstr("libopenblas0-openmp"));
  EXPECT_EQ(JudgeBlas("libblas.so.3", 1).verdict, Verdict::kWarn);
  EXPECT_EQ(JudgeBlas("", std::nullopt).verdict, Verdict::kWarn);
  const auto memory = [](uint64_t coordinator, std::optional<uint64_t> worker) {
    return JudgeMemory(100, {.coordinator_bytes = coordinator, .worker_bytes = worker});
  };
  EXPECT_EQ(memory(50, 50).verdict, Verdict::kOk);
  EXPECT_EQ(memory(150, 50).verdict, Verdict::kWarn);
  EXPECT_EQ(memory(150, 150).verdict, Verdict::kFail);
  const Check external = memory(150, std::nullopt);
  EXPECT_EQ(external.verdict, Verdict::kWarn);
  EXPECT_THAT(external.text, HasSubstr("the coordinator needs 150 B, a worker as much as its model"));
  EXPECT_THAT(external.advice, HasSubstr("the coordinator does not fit here"));
}

TEST(Judge, DiskAndNetwork) {
  EXPECT_EQ(JudgeDiskSpeed(500e6).verdict, Verdict::kOk);
  EXPECT_EQ(JudgeDiskSpeed(20e6).verdict, Verdict::kWarn);
  EXPECT_EQ(JudgeSyncLatency(0.05).verdict, Verdict::kWarn);
  EXPECT_EQ(ProbeBytes(uint64_t{100} << 30), uint64_t{256} << 20);
  EXPECT_EQ(ProbeBytes(uint64_t{1} << 30), uint64_t{128} << 20) << "an eighth of what is free";
  EXPECT_EQ(ProbeBytes(uint64_t{20} << 20), 0u) << "nothing is written to a disk that is nearly full";
  const DiskNeed need{.bytes = 11, .remedy = "a larger disk"};
  EXPECT_EQ(JudgeFreeSpace(10, need).verdict, Verdict::kFail);
  EXPECT_EQ(JudgeFreeSpace(10, need).advice, need.remedy);
  const DiskNeed unknown{.remedy = "set model.external.parameters"};
  EXPECT_EQ(JudgeFreeSpace(10, unknown).advice, unknown.remedy);
  EXPECT_EQ(JudgeFreeSpace(11, need).verdict, Verdict::kOk);
  const DiskNeed resumed{.bytes = 11, .checkpoint_bytes = 4, .used_bytes = 5};
  EXPECT_EQ(JudgeFreeSpace(6, resumed).verdict, Verdict::kOk) << "the run's own files are part of its need";
  EXPECT_EQ(JudgeFreeSpace(5, resumed).verdict, Verdict::kFail);
  EXPECT_EQ(JudgeFreeSpace(5, resumed).text,
            "5 B free, the run needs 11 B, 4 B of it for checkpoints; its directory uses 5 B now");
  EXPECT_EQ(JudgeRoundTrip("data port", "a:1", 0.7).verdict, Verdict::kWarn);
  EXPECT_EQ(JudgeClock(3600, 0.01).verdict, Verdict::kWarn);
  EXPECT_EQ(JudgeClock(-5.4, 0.5).verdict, Verdict::kOk) << "the round trip may explain it";
}

nlohmann::json CheckNamed(const Outcome& outcome, const std::string& name) {
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  if (!json.is_object()) return {};
  for (const auto& check : json["checks"]) {
    if (check["name"] == name) return check;
  }
  return {};
}

TEST(Doctor, WithOnlyTheAdminPortForwardedThereIsACoordinator) {
  FakeAdmin admin;
  // Port 1 of this machine is nobody's: what the default data port is where only the admin port was
  // forwarded.
  const NetworkTarget target{.coordinator = "127.0.0.1:1", .admin = admin.address(), .deadline = Seconds(3)};
  const std::vector<Check> checks = CheckNetwork(target, SystemClock());
  ASSERT_FALSE(checks.empty());
  EXPECT_EQ(checks[0].name, "data port");
  EXPECT_EQ(checks[0].verdict, Verdict::kWarn);
  EXPECT_THAT(checks[0].text, AllOf(HasSubstr("not checked"), HasSubstr(admin.address())));
  EXPECT_THAT(checks[0].advice, HasSubstr("--coordinator"));
  // One that was given must answer.
  NetworkTarget given = target;
  given.coordinator_given = true;
  EXPECT_EQ(CheckNetwork(given, SystemClock())[0].verdict, Verdict::kFail);
}

TEST(Judge, RunDirectory) {
  EXPECT_EQ(JudgeRunDirectory("d", "", "a").verdict, Verdict::kOk);
  EXPECT_EQ(JudgeRunDirectory("d", "a", "a").verdict, Verdict::kOk);
  EXPECT_EQ(JudgeRunDirectory("d", "a", "").verdict, Verdict::kOk);
  const Check other = JudgeRunDirectory("d", "b", "a");
  EXPECT_EQ(other.verdict, Verdict::kFail);
  EXPECT_THAT(other.text, HasSubstr("d holds run 'b', but the configuration is for run 'a'"));
  EXPECT_EQ(JudgeRunDirectory("d", absl::InvalidArgumentError("photos"), "a").verdict, Verdict::kFail);
  EXPECT_EQ(JudgeRunDirectory("d", absl::DataLossError("torn"), "a").verdict, Verdict::kWarn)
      << "the coordinator may just write it";
}

TEST(Doctor, ADirectoryThatCannotBeMadeFails) {
  TestDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("file"), "x").ok());
  std::filesystem::create_symlink("nowhere", dir.File("dangling"));
  std::filesystem::create_symlink("loop", dir.File("loop"));
  const Atollctl atollctl({"--json", "--timeout", "0.3"});
  const auto check = [&](const std::string& folder) {
    const Outcome outcome = atollctl.Run({"doctor", "--dir", folder});
    EXPECT_EQ(outcome.exit_code, 1) << folder;
    EXPECT_EQ(CheckNamed(outcome, "disk speed"), nlohmann::json()) << "no other folder is measured instead";
    const auto found = CheckNamed(outcome, "data directory");
    EXPECT_EQ(found["verdict"], "fail") << folder;
    EXPECT_THAT(found["advice"].get<std::string>(), HasSubstr("--dir"));
    return found["text"].get<std::string>();
  };
  EXPECT_EQ(check(dir.File("file")), dir.File("file") + " is not a folder");
  EXPECT_EQ(check(dir.File("file/a/b")), dir.File("file") + " is not a folder");
  EXPECT_EQ(check(dir.File("dangling")), dir.File("dangling") + " is a link that leads to no folder");
  EXPECT_EQ(check(dir.File("dangling/a")), dir.File("dangling") + " is a link that leads to no folder");
  EXPECT_THAT(check(dir.File("loop/a")), HasSubstr("loop/a"));
  EXPECT_THAT(check("/proc/run1"), HasSubstr("make a folder in /proc")) << "not even root can";
  EXPECT_EQ(ListDir(dir.path()).value().size(), 3u) << "nothing is left behind";
}

/// As a user without rights: root may write everywhere.
void ExitWithVerdictInReadOnlyFolder(const std::string& folder) {
  if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
  ::_exit(CheckRunDirectory(folder, "").verdict == Verdict::kFail ? 0 : 1);
}

TEST(Doctor, AReadOnlyParentFails) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("read-only")).ok());
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(dir.File("read-only").c_str(), 0555), 0);
  EXPECT_EXIT(ExitWithVerdictInReadOnlyFolder(dir.File("read-only/run1")), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ExitWithVerdictInReadOnlyFolder(dir.File("read-only")), testing::ExitedWithCode(0), "");
}

TEST(Doctor, RefusesEmptyFolderNames) {
  for (const char* option : {"--dir", "--data"}) {
    const Outcome outcome = Atollctl().Run({"doctor", option, ""});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(option));
  }
}

TEST(Doctor, FilesOfARunCountOnce) {
  TestDir dir;
  EXPECT_EQ(UsedBytes(dir.File("absent")), 0u);
  ASSERT_TRUE(CreateDirs(dir.File("sst")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("sst/1"), std::string(1 << 20, 'x')).ok());
  const uint64_t used = UsedBytes(dir.path());
  EXPECT_GE(used, uint64_t{1} << 20);
  std::filesystem::create_hard_link(dir.File("sst/1"), dir.File("sst/2"));
  EXPECT_EQ(UsedBytes(dir.path()), used) << "a checkpoint shares its files with the run";
}

TEST(Doctor, AnAdminPortThatDeniesAWorkerIsNoStrangers) {
  FakeAdmin admin;
  admin.rejection = absl::PermissionDeniedError("worker w0 may not call the admin port");
  NetworkTarget target{.coordinator = "127.0.0.1:1", .admin = admin.address(), .deadline = Seconds(3)};
  std::vector<Check> checks = CheckNetwork(target, SystemClock());
  ASSERT_GE(checks.size(), 2u);
  EXPECT_EQ(checks[1].name, "admin port");
  EXPECT_EQ(checks[1].verdict, Verdict::kOk) << checks[1].text;
  EXPECT_THAT(checks[1].text, AllOf(HasSubstr("a coordinator answers"), HasSubstr("worker w0 may not")));
  target.admin_given = true;
  EXPECT_EQ(CheckNetwork(target, SystemClock())[1].verdict, Verdict::kFail);
}

TEST(Doctor, TheAdminPortOfOthersDoesNotFailAWorkersMachine) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket.get(), 8), 0);
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  NetworkTarget target{.coordinator = "127.0.0.1:1",
                       .admin = "127.0.0.1:" + std::to_string(ntohs(address.sin_port)),
                       .coordinator_given = true,
                       .deadline = Seconds(0.2)};
  const Check worker = CheckNetwork(target, SystemClock())[1];
  EXPECT_EQ(worker.name, "admin port");
  EXPECT_EQ(worker.verdict, Verdict::kWarn) << worker.text;
  EXPECT_THAT(worker.advice, HasSubstr("workers do not need this port"));
  target.coordinator_given = false;
  EXPECT_EQ(CheckNetwork(target, SystemClock())[1].verdict, Verdict::kFail);
}

TEST(Doctor, FindsTheCoordinatorAndItsClock) {
  FakeAdmin admin;
  admin.status.set_unix_nanos((std::chrono::system_clock::now() + std::chrono::hours(1)).time_since_epoch() /
                              std::chrono::nanoseconds(1));
  const Outcome outcome = Atollctl({"--admin", admin.address(), "--json"}).Run({"doctor"});
  EXPECT_EQ(CheckNamed(outcome, "admin port")["verdict"], "ok") << outcome.out;
  EXPECT_EQ(CheckNamed(outcome, "clock")["verdict"], "warn");
  EXPECT_THAT(CheckNamed(outcome, "clock")["text"].get<std::string>(), HasSubstr("ahead"));
}

TEST(Doctor, SaysWhoseRunAnswers) {
  FakeAdmin admin;
  admin.status.mutable_config()->mutable_run()->set_name("quickstart");
  const Outcome any = Atollctl({"--admin", admin.address(), "--json"}).Run({"doctor"});
  EXPECT_EQ(CheckNamed(any, "run")["text"], admin.address() + " serves run 'quickstart'") << any.out;
  const Outcome other = Atollctl({"--admin", admin.address(), "--json"})
                            .Run({"doctor", ATOLL_SOURCE_DIR "/configs/small.yaml"});
  EXPECT_EQ(CheckNamed(other, "run")["verdict"], "warn") << other.out;
  EXPECT_THAT(CheckNamed(other, "run")["text"].get<std::string>(), HasSubstr("for run 'small'"));
  EXPECT_THAT(CheckNamed(other, "run")["advice"].get<std::string>(), HasSubstr("--admin-listen"));
}

TEST(Doctor, AnAddressThatWasGivenMustAnswer) {
  const Outcome outcome =
      Atollctl({"--coordinator", "127.0.0.1:1", "--timeout", "0.3", "--json"}).Run({"doctor"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(CheckNamed(outcome, "data port")["verdict"], "fail");
  EXPECT_THAT(outcome.err, HasSubstr("checks failed"));
}

TEST(Doctor, ChecksConfigurationDiskAndTokens) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("tokens")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("tokens/train_000.bin"), std::string(4096, 'x')).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("tokens/meta.json"), R"({"vocabulary": 50257})").ok());
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";
  const Atollctl atollctl({"--json", "--timeout", "0.3"});
  const Outcome outcome =
      atollctl.Run({"doctor", config, "--dir", dir.File("not/yet/there"), "--data", dir.File("tokens")});
  EXPECT_EQ(outcome.exit_code, 1) << "small.yaml has a vocabulary of 256";
  EXPECT_EQ(CheckNamed(outcome, "configuration")["verdict"], "ok");
  EXPECT_THAT(CheckNamed(outcome, "memory")["text"].get<std::string>(), HasSubstr("the coordinator needs"));
  EXPECT_NE(CheckNamed(outcome, "disk speed"), nlohmann::json());
  EXPECT_NE(CheckNamed(outcome, "disk sync"), nlohmann::json());
  EXPECT_EQ(CheckNamed(outcome, "disk space")["verdict"], "ok");
  EXPECT_THAT(CheckNamed(outcome, "token files")["text"].get<std::string>(),
              HasSubstr("model.gpt.vocabulary is 256"));
  EXPECT_EQ(ListDir(dir.path()).value().size(), 1u) << "the probe is gone";
  ASSERT_TRUE(WriteFileAtomically(dir.File("bad.yaml"), "run: {nme: x}").ok());
  EXPECT_EQ(CheckNamed(atollctl.Run({"doctor", dir.File("bad.yaml")}), "configuration")["verdict"], "fail");
}

TEST(Doctor, AnExternalModelGetsNoAdviceForGpt) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("images")).ok());
  const auto write = [&](const std::string& model) {
    const std::string config = "run: {name: e, workers: 2, rounds: 9}\nmodel: " + model +
                               "\ninner: {steps: 2, learning_rate: 1e-3, batch: 2}\n";
    EXPECT_TRUE(WriteFileAtomically(dir.File("run.yaml"), config).ok());
  };
  const auto doctor = [&](const std::string& folder) {
    return Atollctl({"--json", "--timeout", "0.3"})
        .Run({"doctor", dir.File("run.yaml"), "--dir", dir.File("run1"), "--data", dir.File(folder)});
  };
  write("external");
  const Outcome unknown = doctor("images");
  EXPECT_EQ(CheckNamed(unknown, "data")["verdict"], "ok") << unknown.out;
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("atoll-data"))) << "its workers read their own data";
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("libopenblas"))) << "they do not use Atoll's LibTorch";
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("inner.precision")));
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("atollctl plan"))) << "it needs the number of parameters";
  EXPECT_THAT(CheckNamed(unknown, "configuration")["advice"].get<std::string>(),
              HasSubstr("model.external.parameters"));
  EXPECT_EQ(CheckNamed(doctor("absent"), "data")["verdict"], "fail");
  write("{external: {parameters: 1000000}}");
  const Outcome known = doctor("images");
  EXPECT_THAT(CheckNamed(known, "memory")["text"].get<std::string>(), HasSubstr("the coordinator needs"));
  EXPECT_THAT(CheckNamed(known, "disk space")["text"].get<std::string>(), HasSubstr("the run needs"));
  write("{external: {parameters: 1000000000000}}");
  const Outcome huge = doctor("images");
  EXPECT_EQ(CheckNamed(huge, "memory")["verdict"], "warn") << huge.out;
  EXPECT_EQ(CheckNamed(huge, "disk space")["verdict"], "fail") << huge.out;
  // atoll-worker trains a TorchScript file, on token files.
  write("{torchscript: {file: model.pt, context: 64, vocabulary: 256}}\ndata: {tokenizer: bytes}");
  const Outcome script = doctor("images");
  EXPECT_THAT(script.out, testing::Not(HasSubstr("external"))) << script.out;
  EXPECT_EQ(CheckNamed(script, "token files")["verdict"], "fail") << script.out;
  EXPECT_THAT(CheckNamed(script, "configuration")["advice"].get<std::string>(),
              HasSubstr("model.torchscript.parameters"));
}

TEST(Doctor, ComparesTheTokenizerOfTheConfigurationWithThatOfTheTokenFiles) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("tokens")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("tokens/train_000.bin"), std::string(4096, 'x')).ok());
  const std::string config = ATOLL_SOURCE_DIR "/configs/small.yaml";  // bytes
  const Atollctl atollctl({"--json", "--timeout", "0.3"});
  const auto check = [&](const std::string& meta) {
    EXPECT_TRUE(WriteFileAtomically(dir.File("tokens/meta.json"), meta).ok());
    return CheckNamed(atollctl.Run({"doctor", config, "--data", dir.File("tokens")}), "tokenizer");
  };
  EXPECT_EQ(check(R"({"tokenizer": "bytes", "vocabulary": 256})")["verdict"], "ok");
  const auto other = check(R"({"tokenizer": "gpt2", "vocabulary": 256})");
  EXPECT_EQ(other["verdict"], "fail") << other;
  EXPECT_THAT(other["text"].get<std::string>(), AllOf(HasSubstr("'gpt2' made"), HasSubstr("is 'bytes'")));
  EXPECT_THAT(other["advice"].get<std::string>(), HasSubstr("data.tokenizer: gpt2"));
  EXPECT_EQ(check(R"({"vocabulary": 256})")["verdict"], "fail");
  EXPECT_EQ(CheckNamed(atollctl.Run({"doctor", config}), "tokenizer")["verdict"], "ok");
}

TEST(Doctor, CountsTheTokensThatMetaJsonLists) {
  TestDir dir;
  ASSERT_TRUE(CreateDirs(dir.File("tokens")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("tokens/00000_shuffled.ds"), std::string(4096, 'x')).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("tokens/meta.json"),
                                  R"({"tokenizer": "bytes", "vocabulary": 256,
                                      "train": [{"name": "00000_shuffled.ds", "tokens": 1500}],
                                      "validation": {"name": "00000_shuffled.ds", "tokens": 548}})")
                  .ok());
  const Atollctl atollctl({"--json", "--timeout", "0.3"});
  const auto found = CheckNamed(
      atollctl.Run({"doctor", ATOLL_SOURCE_DIR "/configs/small.yaml", "--data", dir.File("tokens")}),
      "token files");
  EXPECT_THAT(found["text"].get<std::string>(), HasSubstr("1.50k training tokens, 548 held out")) << found;
}

TEST(Doctor, ATokenizerThatAtollLacksNeedsTokenFiles) {
  const Check typo = JudgeTokenizer("byte", std::nullopt);
  EXPECT_EQ(typo.verdict, Verdict::kWarn);
  EXPECT_THAT(typo.text, HasSubstr("'byte'; nothing here shows whether"));
  EXPECT_THAT(typo.advice, HasSubstr("atoll-data adopt"));
  const Check adopted = JudgeTokenizer("gpt2", "gpt2");
  EXPECT_EQ(adopted.verdict, Verdict::kOk);
  EXPECT_THAT(adopted.text, HasSubstr("atoll-model generate needs its file"));
  EXPECT_EQ(JudgeTokenizer(std::nullopt, "gpt2").verdict, Verdict::kOk);
  EXPECT_EQ(JudgeTokenizer(std::nullopt, "").verdict, Verdict::kFail);
}

TEST(RenderChecks, ALineAndWhatToDo) {
  const auto lines = RenderChecks({Ok("gpu", "none"), Warn("blas", "slow\x1b[2J", "install it")});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], AllOf(HasSubstr(" warn  blas"), HasSubstr("slow[2J")));
  EXPECT_THAT(lines[2], HasSubstr("-> install it"));
}

}  // namespace
}  // namespace atl
