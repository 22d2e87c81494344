#include "tests/launch/api_server.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "tests/launch/wait_until.h"
#include "tests/paths.h"

namespace atl {

absl::Status ApiServer::MakeCertificate(const std::string& name, const std::string& alternative_name) {
  const Finished made = RunToEnd(
      {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
       "-days", "2", "-subj", "/CN=atoll-test", "-addext", "subjectAltName=" + alternative_name, "-keyout",
       dir_.File(name + ".key"), "-out", dir_.File(name + ".crt")},
      Seconds(60));
  if (made.exit_code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("openssl: %d: %s", made.exit_code, made.output));
}

void ApiServer::Write(const std::string& name, const std::string& contents) {
  const absl::Status written = WriteFileAtomically(dir_.File(name), contents);
  if (!written.ok()) ADD_FAILURE() << written;
}

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start() {
  std::unique_ptr<ApiServer> server(new ApiServer());
  for (const char* folder : {"credentials", "faults", "status"}) {
    ATOLL_RETURN_IF_ERROR(CreateDirs(server->dir_.File(folder)));
  }
  ATOLL_RETURN_IF_ERROR(server->MakeCertificate("server", "IP:127.0.0.1"));
  ATOLL_ASSIGN_OR_RETURN(const std::string certificate, ReadFile(server->dir_.File("server.crt")));
  server->Write("credentials/ca.crt", certificate);
  server->Write("credentials/namespace", "ml\n");
  server->SetToken("secret-1");
  server->AcceptTokens("secret-1");
  server->Forbid("");
  ATOLL_RETURN_IF_ERROR(server->Serve());
  return server;
}

absl::Status ApiServer::Serve() {
  ATOLL_ASSIGN_OR_RETURN(
      process_, Process::Start({"python3", "-B", ATOLL_SOURCE_DIR "/tests/launch/api_server.py", dir_.path()},
                               dir_.File("log")));
  const bool serves = WaitUntil([this] { return FileExists(dir_.File("port")) || !process_->running(); });
  const auto port = ReadFile(dir_.File("port"));
  if (!serves || !port.ok())
    return absl::InternalError("it does not serve: " + ReadFile(dir_.File("log")).value_or(""));
  port_ = *port;
  return absl::OkStatus();
}

KubernetesApiOptions ApiServer::Options() const {
  KubernetesApiOptions options;
  options.host = "127.0.0.1";
  options.port = port_;
  options.credentials = dir_.File("credentials");
  options.timeout = Seconds(10);
  options.backoff = {.initial = Seconds(0.002), .maximum = Seconds(0.01), .multiplier = 2};
  return options;
}

void ApiServer::SetToken(const std::string& token) { Write("credentials/token", token); }
void ApiServer::AcceptTokens(const std::string& tokens) { Write("tokens", tokens); }
void ApiServer::Forbid(const std::string& verb_and_resource) { Write("forbidden", verb_and_resource); }
void ApiServer::SetPodStatus(const std::string& pod, const nlohmann::json& status) {
  Write("status/" + pod, status.dump());
}
void ApiServer::SetsPerWorker(int sets) { Write("sets", std::to_string(sets)); }
void ApiServer::AddFault(const nlohmann::json& fault) {
  // Made elsewhere and moved: the server must not find a file that is still being written.
  Write("fault.new", fault.dump());
  const absl::Status moved =
      RenameFile(dir_.File("fault.new"), dir_.File(absl::StrFormat("faults/%06d", ++faults_)));
  if (!moved.ok()) ADD_FAILURE() << moved;
}

void ApiServer::Block(const std::string& name, const std::string& method, const std::string& path_end,
                      const std::string& in_body) {
  AddFault({{"status", 503}, {"of", {method, path_end, in_body}}, {"until", name}});
}
bool ApiServer::Blocked(const std::string& name) const { return FileExists(dir_.File(name + ".played")); }
void ApiServer::Allow(const std::string& name) { Write(name, ""); }

std::vector<nlohmann::json> ApiServer::Requests() const {
  std::vector<nlohmann::json> requests;
  std::string text = ReadFile(dir_.File("requests")).value_or("");
  text.resize(text.rfind('\n') + 1);  // the server may be writing the last line
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) requests.push_back(nlohmann::json::parse(line));
  return requests;
}

std::vector<nlohmann::json> ApiServer::Requests(const std::string& method) const {
  std::vector<nlohmann::json> requests;
  for (nlohmann::json& request : Requests()) {
    if (request["method"] == method) requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace atl
