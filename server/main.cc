// atoll-coordinator: puts store, coordinator, ports and metrics together, and takes them down in order.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "atoll/version.h"
#include "common/bind_address.h"
#include "common/command_line/help.h"
#include "common/command_line/parse.h"
#include "common/exit_codes.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/input_file.h"
#include "common/log.h"
#include "common/process_setup.h"
#include "common/shutdown.h"
#include "common/status.h"
#include "common/thread_check.h"
#include "monitoring/certificate_metrics.h"
#include "monitoring/endpoint.h"
#include "monitoring/metrics.h"
#include "monitoring/program_metrics.h"
#include "protos/config/assumed_fields.h"
#include "protos/config/defaults.h"
#include "protos/config/run_config.h"
#include "protos/config/run_config_codec.h"
#include "protos/transport/grpc_log.h"
#include "server/access/denial_log.h"
#include "server/admin/admin_control.h"
#include "server/create_coordinator.h"
#include "server/metrics/launcher_metrics.h"
#include "server/metrics/port_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/status_metrics.h"
#include "server/new_model.h"
#include "server/opening/import_seed.h"
#include "server/opening/run_opening.h"
#include "server/program/file_limit.h"
#include "server/program/launch_flags.h"
#include "server/program/port_file.h"
#include "server/program/security_flags.h"
#include "server/rpc/handshake_failures.h"
#include "server/rpc/health_listener.h"
#include "server/rpc/port_limits.h"
#include "server/rpc/server.h"
#include "server/web/web_server.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "storage/weights/model_files.h"

namespace atl {
namespace {

constexpr char kStopped[] = "stopped; start it again with the same data directory to go on";
constexpr char kStoppedForGood[] =
    "stopped; the run was stopped permanently: a new start serves its last version, and trains no more";

const HelpText& ProgramHelp() {
  static const auto& text = *new HelpText{
      .examples = {{"atoll-coordinator --config run.yaml --data-dir ./run1",
                    "Start the run, or continue the one in ./run1; workers connect to 127.0.0.1:7600"},
                   {"atoll-coordinator --data-dir ./run1",
                    "Continue with the configuration that the run was started with"},
                   {"atoll-coordinator --config run.yaml --data-dir run1 --launcher process "
                    "--worker-arg=--data=tokens",
                    "Also start the run's workers on this host, and restart failed ones"}},
      .notes =
          "All state is in the data directory. After a crash, run the same command again; the workers "
          "reconnect by themselves. SIGTERM or Ctrl-C stops the coordinator cleanly, a second signal stops "
          "it at once; acknowledged contributions survive both. 'atollctl config explain' lists the fields "
          "of a configuration, 'atollctl watch' follows the run."};
  return text;
}

constexpr char kWebListen[] = "127.0.0.1:7604";
constexpr size_t kThreads = 64;  // with all ports it has 54 when nobody calls; gRPC starts more for calls

struct Flags {
  std::string config;
  std::string data_dir;
  std::string import_file;
  std::string listen = "127.0.0.1:7600";
  std::string admin_listen = "127.0.0.1:7601";
  std::string metrics_listen = "127.0.0.1:7602";
  std::string health_listen;
  std::optional<std::string> web_listen;  // nullopt: kWebListen, or no page when somebody has that port
  std::vector<std::string> web_names;
  std::string log_format = "human";
  std::string log_level = "info";
  std::string port_file;
  size_t max_connections = 4096;
  std::optional<uint64_t> memory_limit_mib;
  LaunchFlags launch;
  SecurityOptions security;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.option_defaults()->take_last();  // of a flag given twice, the later counts
  app.set_version_flag("--version", absl::StrFormat("atoll-coordinator %s (%s)", kVersion, kGitRevision));
  app.add_option("--config", flags.config,
                 "Configuration of the run (YAML); required for a new run, recorded in the data directory");
  app.add_option("--data-dir", flags.data_dir, "Folder of the run's state; created if it does not exist")
      ->required()
      ->check(NotEmpty());
  app.add_option("--import", flags.import_file,
                 "Seed a new run with this safetensors file or Hugging Face folder (F32, F16 or BF16)");
  app.add_option("--listen", flags.listen, "Address of the data port, for workers; port 0: any free port")
      ->capture_default_str();
  app.add_option("--admin-listen", flags.admin_listen, "Address of the admin port, for atollctl")
      ->capture_default_str();
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "Serve Prometheus metrics on http://ADDRESS/metrics; \"\": none")
      ->capture_default_str();
  app.add_option(
      "--health-listen", flags.health_listen,
      "Address of a plaintext port with only the gRPC health service, for a kubelet or a load "
      "balancer. It is open from the start and reports SERVING once the other ports serve; default: "
      "none");
  app.add_option(
      "--web-listen", flags.web_listen,
      "Serve the web page on http://ADDRESS/; \"\": no page. Default: 127.0.0.1:7604, without a page when "
      "that port is in use");
  app.add_option("--web-name", flags.web_names,
                 "Allow browsers to open the web page under this host name; repeatable")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--log-format", flags.log_format, "Log format; json writes one object per line")
      ->capture_default_str()
      ->check(CLI::IsMember({"human", "json"}));
  app.add_option("--log-level", flags.log_level, "Lowest level that is logged")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
  app.add_option("--port-file", flags.port_file,
                 "Write the addresses of all ports to this file (JSON) once they serve; replaces only one "
                 "that a coordinator wrote");
  app.add_option("--max-connections", flags.max_connections,
                 "Maximum number of connections per port, half of them from one address; lowered to fit the "
                 "limits of open files and of memory, and never above 6144 on the data port and 2048 on the "
                 "admin port")
      ->capture_default_str()
      ->check(CLI::Range(16, 30000));
  app.add_option(
         "--memory-limit-mib", flags.memory_limit_mib,
         "Memory that this process may have, by which it bounds what clients make it hold; default: the "
         "limit of its cgroup, else the machine's memory")
      ->check(CLI::Range(64, 1 << 24));
  AddSecurityFlags(app, flags.security);
  AddLaunchFlags(app, flags.launch);
  SetHelp(app, ProgramHelp());
}

struct RunConfiguration {
  std::string bytes;
  RunOptions options;
  bool staleness_open = false;  // CoordinatorOptions
};

/// The configurations of the run in this directory, in order. Opens the store for a moment.
absl::StatusOr<std::vector<ConfigEntry>> RecordedConfigs(const std::string& data_dir) {
  const std::string advice = "; give --config FILE to begin a run";
  auto store = OpenRocksDbStore({.data_dir = data_dir, .create_if_missing = false});
  if (absl::IsNotFound(store.status())) {
    return absl::NotFoundError(absl::StrFormat("there is no run in %s%s", data_dir, advice));
  }
  ATOLL_RETURN_IF_ERROR(store.status());
  ATOLL_ASSIGN_OR_RETURN(std::optional<Recovery> recovery, (*store)->Recover());
  if (!recovery || recovery->configs.empty()) {
    return absl::NotFoundError(absl::StrFormat("the run in %s has no configuration yet%s", data_dir, advice));
  }
  return std::move(recovery->configs);
}

/// Of a run that is there: what the file leaves to a default that has changed since stays as it was at the
/// last start.
void KeepOldDefaults(const std::string& data_dir, RunConfigFile& file) {
  if (file.assumed.empty()) return;
  const auto recorded = RecordedConfigs(data_dir);
  // Whatever is wrong with the directory is told when it is opened to be served.
  if (!recorded.ok()) return;
  for (auto it = recorded->rbegin(); it != recorded->rend(); ++it) {
    v1::RunConfig config;
    if (it->author != kStartAuthor || !config.ParseFromString(it->bytes)) continue;
    FillAbsent(&config);
    return KeepRecorded(file.assumed, config, &file.config);
  }
}

absl::StatusOr<RunConfiguration> LoadConfiguration(const Flags& flags, const Logger& log) {
  RunConfiguration result;
  if (flags.config.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> recorded, RecordedConfigs(flags.data_dir));
    result.bytes = recorded.back().bytes;
  } else {
    ATOLL_ASSIGN_OR_RETURN(RunConfigFile file, ReadRunConfigFile(flags.config));
    for (const std::string& warning : file.warnings) log.Warning(warning);
    KeepOldDefaults(flags.data_dir, file);
    result.bytes = file.config.SerializeAsString();
    result.staleness_open = file.staleness_open;
  }
  ATOLL_ASSIGN_OR_RETURN(result.options, RunConfigCodec().Parse(result.bytes));
  // A begun run keeps what it is: its file may say less than `atollctl config set` has said since.
  if (FileExists(JoinPath(flags.data_dir, "meta"))) return result;
  ATOLL_RETURN_IF_ERROR(CheckNewModel(result.options));
  ATOLL_RETURN_IF_ERROR(CheckImport(flags.import_file, result.options));
  return result;
}

ExitCode ConfigurationExitCode(const Flags& flags, const absl::Status& status) {
  if (!flags.config.empty()) return LocalExitCode(status);
  const bool missing = absl::IsNotFound(status) || absl::IsInvalidArgument(status);
  return missing ? ExitCode::kUsage : ExitCode::kStorage;
}

/// What is made of the flags before anything runs.
struct Parts {
  std::unique_ptr<ServerSecurity> security;
  std::unique_ptr<HealthListener> health;  // null: nobody asks
  std::unique_ptr<Launcher> launcher;      // null: nobody launches workers
  std::unique_ptr<RunStore> store;
  std::shared_ptr<HandshakeFailures> handshakes;
};

absl::StatusOr<std::unique_ptr<Coordinator>> OpenCoordinator(const Flags& flags,
                                                             const RunConfiguration& configuration,
                                                             Parts parts, const Clock* clock,
                                                             const Logger& log, CoordinatorObserver* observer,
                                                             const RunConfigCodec& config_codec) {
  CoordinatorOptions options;
  options.run = configuration.options;
  options.config_bytes = configuration.bytes;
  options.staleness_open = configuration.staleness_open;
  options.data_directory = flags.data_dir;
  options.import_path = flags.import_file;
  options.max_ranks = flags.security.max_ranks;
  options.launch_workers = flags.launch.workers.value_or(configuration.options.workers);
  CoordinatorDeps deps;
  deps.store = std::move(parts.store);
  deps.launcher = std::move(parts.launcher);
  deps.clock = clock;
  deps.log = log;
  deps.observer = observer;
  deps.config_codec = &config_codec;
  return CreateCoordinator(std::move(options), std::move(deps));
}

ExitCode OpeningExitCode(const Flags& flags, const absl::Status& status) {
  if (const std::string& path = flags.import_file; !path.empty()) {
    const bool readable = IsModelFolder(path) || OpenInput(path, InputKind::kFile).ok();
    if (!readable || absl::IsNotFound(status)) return ExitCode::kBadFiles;
  }
  const bool configured_wrongly = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  return configured_wrongly ? ExitCode::kUsage : ExitCode::kStorage;
}

ClientCertificates ParseClientAuth(const std::string& text) {
  if (text == "require") return ClientCertificates::kRequired;
  return text == "optional" ? ClientCertificates::kOptional : ClientCertificates::kNone;
}

RpcServerOptions RpcOptions(const Flags& flags, const ServerSecurity& security) {
  RpcServerOptions options;
  options.data_address = flags.listen;
  options.admin_address = flags.admin_listen;
  options.exposure = flags.security.insecure_bind ? Exposure::kAnyInterface : Exposure::kLoopbackOnly;
  options.security.certificates = security.certificates();
  options.security.client_certificates = ParseClientAuth(security.client_auth());
  options.security.warning = security.Warning({flags.listen, flags.admin_listen});
  return options;
}

WebServerOptions WebOptions(const Flags& flags, const AccessPolicy* access) {
  WebServerOptions options;
  options.address = flags.web_listen.value_or(kWebListen);
  options.names = flags.web_names;
  options.exposure = flags.security.insecure_bind ? Exposure::kAnyInterface : Exposure::kLoopbackOnly;
  options.certificate_file = flags.security.files.certificate;
  options.key_file = flags.security.files.key;
  options.access = access;
  // Shown to visitors without a token: no flag, and no path of this machine but the one that every data
  // directory has.
  const auto address = ParseBindAddress(options.address);
  options.token_hint = address.ok() && IsLoopback(*address)
                           ? "The first one is in DATA_DIR/access/admin.token on the coordinator's machine, "
                             "where DATA_DIR is the run's data directory."
                           : "Ask the operator of this run for one.";
  return options;
}

/// The same port twice would be found only when the second is opened.
absl::Status CheckDistinct(const Flags& flags) {
  const std::pair<const char*, std::string> ports[] = {{"--listen", flags.listen},
                                                       {"--admin-listen", flags.admin_listen},
                                                       {"--metrics-listen", flags.metrics_listen},
                                                       {"--health-listen", flags.health_listen},
                                                       {"--web-listen", flags.web_listen.value_or("")}};
  for (size_t i = 0; i < std::size(ports); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto& [option, address] = ports[j];
      if (address.empty() || address != ports[i].second || absl::EndsWith(address, ":0")) continue;
      return absl::InvalidArgumentError(absl::StrFormat("%s and %s are both %s; give each a port of its own",
                                                        option, ports[i].first, address));
    }
  }
  return absl::OkStatus();
}

/// Before a data directory is touched: whether all ports are to be had.
absl::Status CheckAddresses(const Flags& flags, const ServerSecurity& security) {
  ATOLL_RETURN_IF_ERROR(CheckDistinct(flags));
  const RpcServerOptions rpc = RpcOptions(flags, security);
  for (const auto& [option, address] :
       {std::pair("--listen", &flags.listen), std::pair("--admin-listen", &flags.admin_listen)}) {
    ATOLL_RETURN_IF_ERROR(NameOption(RpcServer::CheckAddress(*address, rpc), option, *address));
  }
  if (const std::string& health = flags.health_listen; !health.empty()) {
    ATOLL_RETURN_IF_ERROR(NameOption(HealthListener::CheckAddress(health), "--health-listen", health));
  }
  if (flags.web_listen && !flags.web_listen->empty()) {
    ATOLL_RETURN_IF_ERROR(
        NameOption(WebServer::CheckAddress(WebOptions(flags, nullptr)), "--web-listen", *flags.web_listen));
  }
  if (flags.metrics_listen.empty()) return absl::OkStatus();
  const auto metrics = ParseBindAddress(flags.metrics_listen);
  return NameOption(metrics.ok() ? CheckBindable(*metrics) : metrics.status(), "--metrics-listen",
                    flags.metrics_listen);
}

/// Before anything that takes time: a probe must see the difference between starting and dead.
absl::StatusOr<std::unique_ptr<HealthListener>> StartHealth(const Flags& flags) {
  if (flags.health_listen.empty()) return nullptr;
  return HealthListener::Start(flags.health_listen);
}

/// Disabled listeners are null.
PortAddresses AddressesOf(const RpcServer& rpc, const MetricsEndpoint* metrics, const HealthListener* health,
                          const WebServer* web) {
  return {.data = rpc.data_address(),
          .admin = rpc.admin_address(),
          .metrics = metrics == nullptr ? "" : metrics->address().ToString(),
          .health = health == nullptr ? "" : health->address(),
          .web = web == nullptr ? "" : web->address().ToString()};
}

using OnDenied = std::function<void(const std::string& peer, const absl::Status& why)>;

/// Null when there is to be none.
absl::StatusOr<std::unique_ptr<WebServer>> StartWeb(const Flags& flags, const AccessPolicy& access,
                                                    Coordinator& coordinator, const Clock& clock,
                                                    const Logger& log, OnDenied on_denied) {
  if (flags.web_listen && flags.web_listen->empty()) return std::unique_ptr<WebServer>();
  WebServerOptions options = WebOptions(flags, &access);
  options.on_denied = std::move(on_denied);
  auto web = WebServer::Start(options, &coordinator, &clock, log);
  if (web.ok() || flags.web_listen) return web;
  // Nobody asked for it: training does not wait for a page.
  const absl::Status why = NameOption(web.status(), "--web-listen", options.address);
  log.Warning("there is no web page; choose another address for it with --web-listen",
              {{"why", std::string(why.message())}});
  return std::unique_ptr<WebServer>();
}

/// Null without TLS. The certificates outlive the registry's last refresh.
std::unique_ptr<CertificateMetrics> ShowCertificates(MetricsRegistry& registry,
                                                     const LiveCertificates* certificates) {
  if (certificates == nullptr) return nullptr;
  auto metrics = std::make_unique<CertificateMetrics>(&registry);
  registry.BeforeScrape([shown = metrics.get(), certificates] {
    shown->Set(certificates->current()->facts.not_after, certificates->last_outcome().ok());
  });
  return metrics;
}

/// Null when there is to be none.
absl::StatusOr<std::unique_ptr<MetricsEndpoint>> StartMetrics(const Flags& flags, MetricsRegistry& registry,
                                                              const Logger& log) {
  if (flags.metrics_listen.empty()) return nullptr;
  ATOLL_ASSIGN_OR_RETURN(auto endpoint, MetricsEndpoint::Start(flags.metrics_listen, registry));
  log.Info("metrics", {{"url", "http://" + endpoint->address().ToString() + "/metrics"}});
  return endpoint;
}

/// Before a scrape: what the coordinator knows now, also of what it has not had a reason to tell yet.
void Refresh(Coordinator& coordinator, const Launcher* launcher, ServerMetrics& metrics,
             StatusMetrics& status_metrics, LauncherMetrics& launcher_metrics) {
  const StatusView status = coordinator.GetStatus(1);  // with the newest round and evaluation
  metrics.OnRunState(status.state);
  metrics.OnCommittedTokens(status.committed_tokens, status.total_tokens);
  status_metrics.Refresh(status, coordinator.ListWorkers(false));
  if (launcher != nullptr) launcher_metrics.Refresh(launcher->view());
}

/// What calls are asked, and where they are counted.
void Connect(ServerSecurity& security, ServerMetrics& metrics, PortMetrics& port_metrics,
             RpcServerOptions& options) {
  options.security.access = &security.policy();
  options.security.tokens = security.tokens();
  options.on_call_rejected = [&port_metrics](std::string_view reason) {
    port_metrics.OnCallRejected(reason);
  };
  options.on_connection_rejected = [&port_metrics](std::string_view port, std::string_view limit) {
    port_metrics.OnConnectionRejected(port, limit);
  };
  options.on_connections = [&port_metrics](std::string_view port, size_t count) {
    port_metrics.OnConnections(port, count);
  };
  options.on_pull_streamed = [&metrics](double seconds) { metrics.OnPullStreamed(seconds); };
  options.on_heartbeat = [&metrics](double seconds) { metrics.OnHeartbeat(seconds); };
}

/// What is written and counted about callers that are turned away.
struct DenialTrail {
  DenialLog log;
  std::shared_ptr<HandshakeFailures> handshakes;
  const Clock& clock;
  PortMetrics& metrics;

  void Follow(RpcServerOptions& options) {
    options.on_call_denied = [this](const std::string& peer, const absl::Status& why) {
      log.Denied("call denied", peer, std::string(why.message()));
    };
    if (options.security.certificates == nullptr) return;
    options.on_ended_unheard = [this](const std::string& peer) {
      const auto why = handshakes->Take(clock.Now());
      if (why.has_value()) log.Denied("TLS handshake failed", peer, *why);
    };
  }
  OnDenied OfWeb() {
    return [this](const std::string& peer, const absl::Status& why) {
      metrics.OnCallRejected(absl::IsUnauthenticated(why) ? "unauthenticated" : "permission_denied");
      log.Denied("web request denied", peer, std::string(why.message()));
    };
  }
};

/// As many connections, bytes and streams as open files and memory allow. Warns of what an operator should
/// know of the ports before they are open.
absl::Status BoundPorts(const Flags& flags, const RunOptions& run, uint64_t parameters, const Logger& log,
                        RpcServerOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const MemoryBounds bounds,
                         FindMemoryBounds(flags.memory_limit_mib, run, parameters, log));
  const size_t connections = ConnectionsWithin(flags.max_connections, RaiseFileLimit());
  LimitPorts(bounds, connections, options);
  if (!options.security.warning.empty()) log.Warning(options.security.warning);
  const std::string fewer = WhyFewerConnections(flags.max_connections, connections, options);
  if (!fewer.empty()) log.Warning(fewer, {{"connections", options.connections.total}});
  return absl::OkStatus();
}

int Fail(const Logger& log, const absl::Status& status, ExitCode code) {
  log.Error(std::string(status.message()));
  log.Flush();
  return ToInt(code);
}

/// Serves until a signal comes. Everything is declared in the order in which it must outlive what follows.
int Serve(const Flags& flags, const RunConfiguration& configuration, Parts parts, const Clock& clock,
          const Logger& log, Shutdown& shutdown) {
  MetricsRegistry registry;
  AddProgramMetrics(&registry, "atoll-coordinator");
  ServerMetrics metrics(&registry);
  StatusMetrics status_metrics(&registry);
  LauncherMetrics launcher_metrics(&registry);
  const std::unique_ptr<ServerSecurity> security = std::move(parts.security);
  RpcServerOptions rpc_options = RpcOptions(flags, *security);
  PortMetrics port_metrics(&registry, !rpc_options.security.warning.empty());
  const auto certificate_metrics = ShowCertificates(registry, security->certificates());
  DenialTrail denials{
      .log = DenialLog(log, &clock), .handshakes = parts.handshakes, .clock = clock, .metrics = port_metrics};
  denials.Follow(rpc_options);
  const RunConfigCodec config_codec;
  const std::unique_ptr<HealthListener> health = std::move(parts.health);
  Launcher* const launcher = parts.launcher.get();
  auto coordinator =
      OpenCoordinator(flags, configuration, std::move(parts), &clock, log, &metrics, config_codec);
  if (!coordinator.ok()) return Fail(log, coordinator.status(), OpeningExitCode(flags, coordinator.status()));
  const absl::Status limited =
      BoundPorts(flags, configuration.options, (*coordinator)->GetStatus(0).parameters, log, rpc_options);
  if (!limited.ok()) return Fail(log, limited, ExitCode::kUsage);
  registry.BeforeScrape([&] {
    Refresh(**coordinator, launcher, metrics, status_metrics, launcher_metrics);
    port_metrics.OnHandshakesFailed(denials.handshakes->total());
  });
  auto endpoint = StartMetrics(flags, registry, log);
  if (!endpoint.ok()) return Fail(log, endpoint.status(), DefaultExitCode(endpoint.status()));
  Connect(*security, metrics, port_metrics, rpc_options);
  auto rpc = RpcServer::Start(rpc_options, coordinator->get(), &clock, log);
  if (!rpc.ok()) return Fail(log, rpc.status(), DefaultExitCode(rpc.status()));
  auto web = StartWeb(flags, security->policy(), **coordinator, clock, log, denials.OfWeb());
  if (!web.ok()) return Fail(log, web.status(), DefaultExitCode(web.status()));
  if (health != nullptr) health->SetServing(true);
  if (!flags.port_file.empty()) {
    const absl::Status written =
        WritePortFile(flags.port_file, AddressesOf(**rpc, endpoint->get(), health.get(), web->get()));
    if (!written.ok()) return Fail(log, written, LocalExitCode(written));
  }

  if (launcher != nullptr) {
    BeginLaunching(flags.launch, (*rpc)->data_address(), (*coordinator)->admin(), *launcher);
  }
  shutdown.Wait();
  if (health != nullptr) health->SetServing(false);
  if (launcher != nullptr) {
    log.Info("ending the launched workers, while they can still push what they have");
    launcher->Shutdown();
  }
  log.Info("shutting down: refusing new work, letting the round that is closing be committed and stored");
  (*rpc)->SetNotServing();
  const bool for_good = (*coordinator)->GetStatus(0).state == RunState::kStopped;
  (*coordinator)->Shutdown();
  if (*web) (*web)->Shutdown();
  (*rpc)->Shutdown();
  registry.StopRefreshing();
  log.Info(for_good ? kStoppedForGood : kStopped, {{"data_directory", flags.data_dir}});
  return ToInt(ExitCode::kOk);
}

int Run(const Flags& flags) {
  auto shutdown = Shutdown::Install();  // first: a stop while it starts is a clean one too
  const char* fault = std::getenv("ATOLL_FAULT");
  if (!ArmFaultPoint(fault == nullptr ? "" : fault).ok()) return ToInt(ExitCode::kUsage);
  LogOptions log_options;
  log_options.level = ParseLogLevel(flags.log_level).value_or(LogLevel::kInfo);
  log_options.format = flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  const auto log = Logger::Create(log_options);
  if (!log.ok()) return ToInt(ExitCode::kUsage);
  const absl::Status threads = CheckThreads(kThreads);
  if (!threads.ok()) return Fail(*log, threads, ExitCode::kStorage);
  const auto handshakes = std::make_shared<HandshakeFailures>();
  RouteGrpcLog(log->With("component", "grpc"),
               [handshakes](std::string_view line) { handshakes->OnLogLine(line, SteadyNow()); });
  if (!shutdown.ok()) return Fail(*log, shutdown.status(), ExitCode::kInternal);
  const absl::Status launch = CheckLaunchFlags(flags.launch, flags.data_dir);
  if (!launch.ok()) return Fail(*log, launch, ExitCode::kUsage);
  const auto configuration = LoadConfiguration(flags, *log);
  if (!configuration.ok()) {
    return Fail(*log, configuration.status(), ConfigurationExitCode(flags, configuration.status()));
  }
  const SystemClock clock{};
  auto security = ServerSecurity::Load(flags.security, &clock, *log);
  if (!security.ok()) return Fail(*log, security.status(), LocalExitCode(security.status()));
  absl::Status addresses = CheckPortFile(flags.port_file);
  if (addresses.ok()) addresses = CheckAddresses(flags, **security);
  if (!addresses.ok()) return Fail(*log, addresses, DefaultExitCode(addresses));
  auto health = StartHealth(flags);
  if (!health.ok()) return Fail(*log, health.status(), DefaultExitCode(health.status()));
  auto launcher = MakeLauncher(flags.launch, flags.data_dir, &clock, *log, security->get());
  if (!launcher.ok()) return Fail(*log, launcher.status(), ExitCode::kUsage);
  auto store = OpenRocksDbStore({.data_dir = flags.data_dir});
  if (!store.ok()) {
    const bool wrong_folder = absl::IsInvalidArgument(store.status());
    return Fail(*log, store.status(), wrong_folder ? ExitCode::kUsage : ExitCode::kStorage);
  }
  // Only now is the directory ours.
  const absl::Status tokens = (*security)->OpenTokens(flags.data_dir);
  if (!tokens.ok()) return Fail(*log, tokens, LocalExitCode(tokens));
  Parts parts{.security = *std::move(security),
              .health = *std::move(health),
              .launcher = *std::move(launcher),
              .store = *std::move(store),
              .handshakes = handshakes};
  return Serve(flags, *configuration, std::move(parts), clock, *log, **shutdown);
}

/// gRPC receives into buffers of 64 KiB that live for a chunk. By default malloc gives their memory back to
/// the kernel each time, and gets it zeroed again; so a heap keeps some. Large vectors still go back at once.
void KeepReceiveBuffers() {
#ifdef M_TRIM_THRESHOLD
  ::mallopt(M_TRIM_THRESHOLD, 8 << 20);  // kept
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);  // goes back at once
#endif
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::SetUpProcess();
  CLI::App app("Hold the model of one training run and lead its rounds.", "atoll-coordinator");
  atl::Flags flags;
  atl::AddFlags(app, flags);
  if (const auto code = atl::ParseCommandLine(app, argc, argv)) return atl::ToInt(*code);
  atl::KeepReceiveBuffers();
  try {
    return atl::Run(flags);
  } catch (const std::system_error& error) {  // of a thread: between CheckThreads and here others took them
    std::fprintf(stderr, "atoll-coordinator: %s\n", std::string(atl::NoThread(error).message()).c_str());
    return atl::ToInt(atl::ExitCode::kStorage);
  }
}
