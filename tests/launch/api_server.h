#ifndef ATOLL_TESTS_LAUNCH_API_SERVER_H_
#define ATOLL_TESTS_LAUNCH_API_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "server/launch/kubernetes_api.h"
#include "tests/common/test_dir.h"
#include "tests/integration/process.h"

namespace atl {

/// A real TLS server that speaks the launcher's part of the Kubernetes API (api_server.py says what it can),
/// with a certificate of its own, and the files of a service account that it believes. Its namespace is "ml",
/// its StatefulSet "train-worker".
class ApiServer {
 public:
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start();

  /// Short timeouts and waits.
  KubernetesApiOptions Options() const;
  std::string Credential(const std::string& name) const { return dir_.File("credentials/" + name); }

  void SetToken(const std::string& token);  // in the pod's file
  void AcceptTokens(const std::string& tokens);
  void Forbid(const std::string& verb_and_resource);
  void SetPodStatus(const std::string& pod, const nlohmann::json& status);
  /// From now on there are the StatefulSets train-worker-0 and so on, so many, instead of train-worker.
  void SetsPerWorker(int sets);
  /// For the next request that has none yet.
  void AddFault(const nlohmann::json& fault);
  /// Answers each request that has this method, this end of its path and this in its body with 503, until
  /// Allow(`name`). Each needs a name of its own.
  void Block(const std::string& name, const std::string& method, const std::string& path_end,
             const std::string& in_body = "");
  bool Blocked(const std::string& name) const;  // it has answered so
  void Allow(const std::string& name);
  /// Another certificate, which nobody has signed.
  absl::Status MakeCertificate(const std::string& name, const std::string& alternative_name);

  /// Every request so far.
  std::vector<nlohmann::json> Requests() const;
  std::vector<nlohmann::json> Requests(const std::string& method) const;

 private:
  ApiServer() = default;
  void Write(const std::string& name, const std::string& contents);
  absl::Status Serve();

  TestDir dir_;
  std::unique_ptr<Process> process_;
  std::string port_;
  int faults_ = 0;
};

}  // namespace atl

#endif  // ATOLL_TESTS_LAUNCH_API_SERVER_H_
