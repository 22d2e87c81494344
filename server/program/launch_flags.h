#ifndef ATOLL_SERVER_PROGRAM_LAUNCH_FLAGS_H_
#define ATOLL_SERVER_PROGRAM_LAUNCH_FLAGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "server/admin/admin_control.h"
#include "server/launch/launcher.h"
#include "server/program/security.h"

namespace atl {

/// The command line's part about launching workers. docs/reference/launchers.md
struct LaunchFlags {
  std::string launcher = "none";
  std::optional<uint32_t> workers;

  std::string command;  // empty: atoll-worker beside this program, else in PATH
  std::vector<std::string> arguments;
  std::string prefix = "w";
  std::string state_dir;  // empty: DATA_DIR/workers
  std::string log_dir;    // empty: the same
  double grace_s = 30;

  std::string kube_host;
  std::string kube_port = "443";
  std::string kube_credentials = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string kube_namespace;
  std::string kube_stateful_set = "atoll-worker";
  bool kube_set_per_worker = false;
  std::string kube_selector = "app.kubernetes.io/name=atoll-worker";

  // Those of one launcher, to say which were given in vain; they live as long as the app.
  std::vector<const CLI::Option*> process_options = {};
  std::vector<const CLI::Option*> kube_options = {};
};

void AddLaunchFlags(CLI::App& app, LaunchFlags& flags);

/// Before anything is opened or written. InvalidArgument: an option of a launcher that is not chosen, or a
/// folder of the workers that is none, or that lies in a folder which only the store writes to.
absl::Status CheckLaunchFlags(const LaunchFlags& flags, const std::string& data_dir);

/// Null for "none". Starts nothing yet. InvalidArgument, NotFound: which flag is wrong, and how.
/// Processes are given what they need to get in; `security` outlives the launcher.
absl::StatusOr<std::unique_ptr<Launcher>> MakeLauncher(const LaunchFlags& flags, const std::string& data_dir,
                                                       const Clock* clock, const Logger& log,
                                                       ServerSecurity* security);

/// Tells it where the coordinator listens, how many workers the run wants, and, if it runs processes, which
/// are drained.
void BeginLaunching(const LaunchFlags& flags, const std::string& data_address, const AdminControl& admin,
                    Launcher& launcher);

}  // namespace atl

#endif  // ATOLL_SERVER_PROGRAM_LAUNCH_FLAGS_H_
