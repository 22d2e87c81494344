// atoll-engine: the worker behind libatoll_client. The library starts it (client/ipc/messages.h has the
// descriptors).
#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "client/engine/engine_options.h"
#include "client/engine/manifest_check.h"
#include "client/engine/option_words.h"
#include "client/engine/snapshot_service.h"
#include "client/engine/status_code.h"
#include "client/engine/worker_service.h"
#include "client/setup/setup_error.h"
#include "common/process_setup.h"
#include "common/standard_output.h"
#include "common/status.h"
#include "protos/transport/grpc_log.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kHelloWait{60'000};

constexpr char kHelp[] =
    "atoll-engine is started by libatoll_client, once for each worker of a training process. It is not for\n"
    "users: link the library, or use the Python package atoll, instead.\n"
    "\n"
    "  --help     this text\n"
    "  --version  the version\n";

/// The caller decides when its worker leaves: Ctrl-C reaches this process as well as the caller, and a
/// supervisor may signal both.
void LeaveSignalsToTheCaller() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(number, SIG_IGN);
}

absl::StatusOr<ipc::Hello> TakeHello(ipc::MessageSocket& socket) {
  ipc::MessageType type{};
  std::string body;
  if (socket.Receive(kHelloWait, type, body) != ipc::Received::kMessage || type != ipc::MessageType::kHello)
    return absl::UnavailableError("no library asks for anything");
  if (ipc::VersionOfHello(body) != ipc::kVersion) {
    return absl::FailedPreconditionError(
        absl::StrFormat("atoll-engine %s speaks version %d to its library, which speaks version %d; install "
                        "both from one release",
                        std::string(kVersion), ipc::kVersion, ipc::VersionOfHello(body).value_or(0)));
  }
  auto hello = ipc::DecodeHello(body);
  if (!hello.has_value()) return absl::InvalidArgumentError("the library's first message is damaged");
  return *std::move(hello);
}

ExitCode Refuse(ipc::MessageSocket& socket, const absl::Status& why) {
  static_cast<void>(
      socket.Send(ipc::MessageType::kRefused,
                  ipc::Encode(ipc::Refused{.code = CodeForCaller(why),
                                           .message = WithOptionWords(std::string(why.message()))})));
  return SetupExitCode(why);
}

ExitCode Serve(CallerChannel& channel) {
  const auto hello = TakeHello(channel.socket);
  if (!hello.ok()) return Refuse(channel.socket, hello.status());
  const bool joins = hello->snapshot == 0;
  const auto options = ParseEngineOptions(hello->options, joins);
  if (!options.ok()) return Refuse(channel.socket, options.status());
  const auto log = MakeLogger(options->log);
  if (!log.ok()) return Refuse(channel.socket, log.status());
  RouteGrpcLog(log->With("component", "grpc"));
  if (!joins) {
    const auto snapshot = PullSnapshot(*options, hello->caller_pid, channel, *log);
    if (!snapshot.ok()) return Refuse(channel.socket, snapshot.status());
    static_cast<void>(channel.socket.Send(ipc::MessageType::kSnapshot, ipc::Encode(*snapshot)));
    return ExitCode::kOk;
  }
  auto manifest = CallerManifest(hello->tensors, options->base_fingerprint);
  if (!manifest.ok()) return Refuse(channel.socket, manifest.status());
  const absl::Status fits = CheckMemory(*manifest, ReadMemoryLimit());
  if (!fits.ok()) return Refuse(channel.socket, fits);
  auto service = WorkerService::Open(*options, *std::move(manifest), &channel, *log);
  if (!service.ok()) return Refuse(channel.socket, service.status());
  static_cast<void>(channel.socket.Send(ipc::MessageType::kReady, ""));
  const ExitCode code = (*service)->Run(hello->caller_pid);
  log->Flush();
  return code;
}

bool StartedByTheLibrary() {
  for (int descriptor = ipc::kSocketDescriptor; descriptor < ipc::kFirstFreeDescriptor; ++descriptor) {
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return false;
  }
  return true;
}

ExitCode Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  const absl::Status written = FlushStandardOutput();
  if (written.ok()) return ExitCode::kOk;
  std::fprintf(stderr, "atoll-engine: %s\n", std::string(written.message()).c_str());
  return DefaultExitCode(written);
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    return ToInt(Print(absl::StrFormat("atoll-engine %s (%s)\n", kVersion, kGitRevision)));
  }
  if (argc > 1 && std::string_view(argv[1]) == "--help") return ToInt(Print(kHelp));
  if (!StartedByTheLibrary()) {
    std::fputs(kHelp, stderr);
    return ToInt(ExitCode::kUsage);
  }
  LeaveSignalsToTheCaller();
  RaiseFileLimit();
  CallerChannel channel;
  if (!channel.status.Map(ipc::kStatusPageBytes)) {
    return ToInt(Refuse(channel.socket, absl::InternalError("the library's status page is too small")));
  }
  return ToInt(Serve(channel));
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::SetUpProcess();
  return atl::Main(argc, argv);
}
