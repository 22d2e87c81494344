#ifndef ATOLL_WORKER_APP_LOADED_MODEL_H_
#define ATOLL_WORKER_APP_LOADED_MODEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/parameters/stored_parameters.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "core/run_options.h"
#include "core/token_width.h"
#include "protos/transport/channel_security.h"
#include "worker/torch/torch_replica.h"

namespace atl {

/// Where a program takes a model from: a live run, a version or a checkpoint of it, or files.
struct ModelSource {
  std::string coordinator = "127.0.0.1:7600";
  std::string admin = "127.0.0.1:7601";
  /// The parameters come through the admin port, and are these.
  bool through_admin = false;
  ParametersQuery stored;
  ClientSecurityFlags security;
  /// Files instead of a coordinator (storage/weights/model_files.h). Empty: the coordinator.
  std::string files;
  /// The run's YAML, which says what the files hold. A folder of transformers may do without.
  std::string config;
  std::string device = "auto";
  int threads = 0;
  /// Compute in float32 also where the run trains in another precision, so that scores can be compared.
  bool exact = false;
};

/// A model that computes, and what is known of it.
struct LoadedModel {
  std::unique_ptr<TorchReplica> replica;
  ModelOptions options;
  std::string tokenizer;         // of the run; empty: not known
  std::vector<TokenId> endings;  // tokens that end a text, where its files say so
  std::optional<TokenId> begin;  // the token that begins a text, where its files name one
};

/// Reads the parameters from files or through the admin port, or pulls the published ones as an observer.
/// `check` sees the name of the tokenizer before that, and may reject it.
absl::StatusOr<LoadedModel> LoadModel(const ModelSource& source,
                                      const std::function<absl::Status(const std::string&)>& check,
                                      const Logger& log);

/// The exit code of a program that failed with this status: of LoadModel, or of what it did with the model.
/// `files`: the model comes from files of this machine.
ExitCode ModelExitCode(const absl::Status& status, bool files);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_LOADED_MODEL_H_
