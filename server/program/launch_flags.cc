#include "server/program/launch_flags.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "server/launch/kubernetes_launcher.h"
#include "server/launch/launch_command.h"
#include "server/launch/process_launcher.h"
#include "server/members/worker_count.h"
#include "storage/rocksdb/store_folders.h"

namespace atl {
namespace {

constexpr char kWorkerProgram[] = "atoll-worker";
constexpr char kProcessGroup[] = "Workers as processes (--launcher process)";
constexpr char kKubernetesGroup[] = "Workers as pods (--launcher kubernetes)";

void AddProcessFlags(CLI::App& app, LaunchFlags& flags) {
  const std::string group = kProcessGroup;
  app.add_option("--worker-command", flags.command,
                 "Program of a worker; default: atoll-worker next to this program, else in PATH")
      ->group(group);
  app.add_option(
         "--worker-arg", flags.arguments,
         "Argument of the workers, for example --worker-arg=--data=tokens; repeatable. {name}, {number}, "
         "{coordinator} and {state_dir} are replaced; --coordinator, --name and --state-dir are added")
      ->group(group)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--worker-prefix", flags.prefix, "Prefix of the workers' names; a number from 0 follows")
      ->capture_default_str()
      ->group(group);
  app.add_option("--worker-state-dir", flags.state_dir,
                 "Folder of the workers' state directories; default: DATA_DIR/workers")
      ->group(group);
  app.add_option("--worker-log-dir", flags.log_dir,
                 "Folder of the workers' logs, NAME.log; default: the folder of their states")
      ->group(group);
  app.add_option("--worker-grace", flags.grace_s,
                 "Seconds between SIGTERM and SIGKILL when a worker is stopped; keep it above the workers' "
                 "--drain-seconds")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0))
      ->group(group);
}

void AddKubernetesFlags(CLI::App& app, LaunchFlags& flags) {
  const std::string group = kKubernetesGroup;
  app.add_option("--kube-statefulset", flags.kube_stateful_set, "Name of the workers' StatefulSet")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--kube-set-per-worker", flags.kube_set_per_worker,
               "Each worker is a StatefulSet of its own with one pod, NAME-0, NAME-1 and so on after "
               "--kube-statefulset NAME: workers with an identity of their own")
      ->group(group);
  app.add_option("--kube-selector", flags.kube_selector, "Label selector of its pods")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kube-namespace", flags.kube_namespace,
                 "Namespace of the StatefulSet; default: that of the service account")
      ->group(group);
  app.add_option("--kube-credentials", flags.kube_credentials,
                 "Folder of the service account: token, ca.crt, namespace")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kube-api-host", flags.kube_host, "Host of the cluster's API server")
      ->envname("KUBERNETES_SERVICE_HOST")
      ->group(group);
  app.add_option("--kube-api-port", flags.kube_port, "HTTPS port of the API server")
      ->envname("KUBERNETES_SERVICE_PORT")
      ->capture_default_str()
      ->group(group);
}

/// The options of a group that are given on the command line only: one from the environment is no mistake.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app, const std::string& group) {
  return app.get_options([&](const CLI::Option* option) {
    return option->get_group() == group && option->get_envname().empty();
  });
}

absl::Status CheckNotInVain(const LaunchFlags& flags, const std::string& launcher,
                            const std::vector<const CLI::Option*>& options) {
  if (flags.launcher == launcher) return absl::OkStatus();
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has no effect with --launcher %s: give --launcher %s, or leave %s out",
                        option->get_name(), flags.launcher, launcher, option->get_name()));
  }
  return absl::OkStatus();
}

std::string StateRoot(const LaunchFlags& flags, const std::string& data_dir) {
  return flags.state_dir.empty() ? JoinPath(data_dir, "workers") : flags.state_dir;
}

/// The folder, or the place above it where it would be created, is a folder.
absl::Status CheckIsFolder(const std::string& option, const std::string& path) {
  std::error_code error;
  for (std::filesystem::path each = std::filesystem::absolute(path, error); !error;
       each = each.parent_path()) {
    struct stat found {};
    const bool link = ::lstat(each.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
    const bool there = ::stat(each.c_str(), &found) == 0;
    if (there && S_ISDIR(found.st_mode)) return absl::OkStatus();
    if (there || link) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s %s: %s is %s; give a folder, which is created if it does not exist", option, path,
          each.string(), there ? "not a folder" : "a symbolic link to a folder that does not exist"));
    }
    if (!each.has_relative_path()) break;
  }
  return absl::OkStatus();
}

absl::Status CheckWorkerFolder(const std::string& option, const std::string& path,
                               const std::string& data_dir) {
  ATOLL_RETURN_IF_ERROR(CheckIsFolder(option, path));
  const auto owned = StoreFolderAround(data_dir, path);
  if (!owned) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s %s lies in %s, a folder of a run's state, and the workers' files there would make "
                      "that run's next start fail; give a folder outside it, or leave the option out: %s",
                      option, path, *owned, JoinPath(data_dir, "workers")));
}

std::string WorkerProgram(const LaunchFlags& flags) {
  if (!flags.command.empty()) return flags.command;
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return kWorkerProgram;
  std::string path(self, static_cast<size_t>(length));
  path = JoinPath(path.substr(0, path.rfind('/')), kWorkerProgram);
  return ::access(path.c_str(), X_OK) == 0 ? path : kWorkerProgram;
}

absl::StatusOr<std::unique_ptr<Launcher>> MakeProcessLauncher(const LaunchFlags& flags,
                                                              const std::string& data_dir, const Clock* clock,
                                                              ServerSecurity* security) {
  ProcessLauncherOptions options;
  options.command.program = WorkerProgram(flags);
  options.command.arguments = flags.arguments;
  ATOLL_ASSIGN_OR_RETURN(options.command.credentials, security->LaunchedArguments(flags.arguments, data_dir));
  options.command.prepare = [security](const WorkerName& name) { return security->PrepareLaunched(name); };
  options.command.state_root = StateRoot(flags, data_dir);
  options.log_dir = flags.log_dir.empty() ? options.command.state_root : flags.log_dir;
  options.name_prefix = flags.prefix;
  options.grace = Seconds(flags.grace_s);
  options.seed = RandomNonZero64();
  const std::string& program = options.command.program;
  if (program.find('/') != std::string::npos && ::access(program.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--worker-command %s: there is no such program, or it may not be run", program));
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<ProcessLauncher> launcher,
                         ProcessLauncher::Create(std::move(options), clock));
  return std::unique_ptr<Launcher>(std::move(launcher));
}

absl::StatusOr<std::unique_ptr<Launcher>> MakeKubernetesLauncher(const LaunchFlags& flags,
                                                                 const Logger& log) {
  KubernetesLauncherOptions options;
  options.api.host = flags.kube_host;
  options.api.port = flags.kube_port;
  options.api.credentials = flags.kube_credentials;
  options.api.seed = RandomNonZero64();
  options.name_space = flags.kube_namespace;
  options.stateful_set = flags.kube_stateful_set;
  options.selector = flags.kube_selector;
  options.set_per_worker = flags.kube_set_per_worker;
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<KubernetesLauncher> launcher,
                         KubernetesLauncher::Create(std::move(options), log.With("component", "launcher")));
  return std::unique_ptr<Launcher>(std::move(launcher));
}

/// Where a process on this host finds what we listen on: every interface has no address of its own.
std::string LocalAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return address;
  const std::string host = address.substr(0, colon), port = address.substr(colon);
  if (host == "0.0.0.0") return "127.0.0.1" + port;
  if (host == "[::]") return "[::1]" + port;
  return address;
}

}  // namespace

void AddLaunchFlags(CLI::App& app, LaunchFlags& flags) {
  const std::string group = "Launching workers";
  app.add_option(
         "--launcher", flags.launcher,
         "Who starts and restarts workers: none (you), process (this program, on this host), kubernetes (the "
         "cluster; this program scales it)")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "process", "kubernetes"}))
      ->group(group);
  app.add_option("--launch-workers", flags.workers,
                 "Number of workers at the start; default: run.workers. 'atollctl workers add' and 'scale' "
                 "change it, "
                 "and the run remembers the change")
      ->check(CLI::Range(0U, kMostWorkersEver))
      ->group(group);
  AddProcessFlags(app, flags);
  AddKubernetesFlags(app, flags);
  flags.process_options = OptionsOf(app, kProcessGroup);
  flags.kube_options = OptionsOf(app, kKubernetesGroup);
}

absl::Status CheckLaunchFlags(const LaunchFlags& flags, const std::string& data_dir) {
  ATOLL_RETURN_IF_ERROR(CheckNotInVain(flags, "process", flags.process_options));
  ATOLL_RETURN_IF_ERROR(CheckNotInVain(flags, "kubernetes", flags.kube_options));
  if (flags.launcher != "process") return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(CheckWorkerFolder("--worker-state-dir", StateRoot(flags, data_dir), data_dir));
  if (flags.log_dir.empty()) return absl::OkStatus();
  return CheckWorkerFolder("--worker-log-dir", flags.log_dir, data_dir);
}

absl::StatusOr<std::unique_ptr<Launcher>> MakeLauncher(const LaunchFlags& flags, const std::string& data_dir,
                                                       const Clock* clock, const Logger& log,
                                                       ServerSecurity* security) {
  if (flags.launcher == "process") return MakeProcessLauncher(flags, data_dir, clock, security);
  if (flags.launcher == "kubernetes") return MakeKubernetesLauncher(flags, log);
  if (flags.workers) {
    return absl::InvalidArgumentError("--launch-workers needs --launcher process or kubernetes");
  }
  return nullptr;
}

void BeginLaunching(const LaunchFlags& flags, const std::string& data_address, const AdminControl& admin,
                    Launcher& launcher) {
  launcher.SetCoordinator(LocalAddress(data_address));
  uint32_t wanted = admin.WantedWorkers();
  const std::vector<WorkerName> drained = admin.DrainedWorkers();
  if (flags.launcher == "process") {
    for (const WorkerName& name : drained) launcher.Release(name).IgnoreError();
  } else {
    // Of a set the highest numbers can be let go.
    const auto is_drained = [&](uint32_t number) {
      return std::count(drained.begin(), drained.end(), NumberedName(flags.kube_stateful_set + "-", number)) >
             0;
    };
    while (wanted > 0 && is_drained(wanted - 1)) --wanted;
  }
  launcher.Begin(wanted);
}

}  // namespace atl
