#ifndef ATOLL_WORKER_APP_COMMANDS_H_
#define ATOLL_WORKER_APP_COMMANDS_H_

#include <cstdint>
#include <string>

#include "client/setup/member_flags.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "protos/transport/channel_security.h"

// What atoll-worker does, once its command line is read: main.cc reads it, these put the parts together.

namespace atl {

struct WorkerFlags {
  MemberFlags member;
  std::string data;
  std::string device = "auto";
  int threads = 0;
};

struct GenerateFlags {
  std::string coordinator = "127.0.0.1:7600";
  std::string model;   // a safetensors file or a folder with some, instead of a coordinator
  std::string config;  // the run's YAML, which says what kind of model the file holds
  std::string prompt = "\n";
  uint32_t tokens = 200;
  double temperature = 0.8;
  uint32_t top_k = 40;
  uint64_t seed = 1337;
  std::string device = "auto";
  int threads = 0;
  ClientSecurityFlags security;
};

/// How a worker's process is to end.
struct WorkerOutcome {
  ExitCode code = ExitCode::kOk;
  bool restart = false;  // as a fresh process with the same arguments, in its place
};

/// Trains (or evaluates) until the run is finished or a signal comes.
WorkerOutcome RunWorker(const WorkerFlags& flags, const Logger& log);

/// Prints what the model writes after the prompt: with the parameters of a file, or with the published ones,
/// pulled as an observer.
ExitCode GenerateText(const GenerateFlags& flags, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_COMMANDS_H_
