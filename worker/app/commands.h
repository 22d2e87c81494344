#ifndef ATOLL_WORKER_APP_COMMANDS_H_
#define ATOLL_WORKER_APP_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/setup/member_flags.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "worker/app/eval/task_flags.h"
#include "worker/app/loaded_model.h"
#include "worker/island/placement.h"
#include "worker/torch/sampling.h"

// What atoll-worker and atoll-model do, once their command line is read: worker/main.cc and
// worker/model_main.cc read it, these put the parts together.

namespace atl {

struct WorkerFlags {
  MemberFlags member;
  std::string data;
  std::string device = "auto";
  int threads = 0;
  bool cuda_graph = false;
  bool encode_on_cpu = false;
  TaskFlags tasks;
  IslandFlags island;
};

struct GenerateFlags {
  ModelSource source;
  std::string tokenizer;          // a name or a file; empty: the run's, or that in the model's folder
  std::string tokenizer_pattern;  // of a file that does not name its own
  std::string prompt = "\n";
  std::string prompt_tokens;  // numbers with spaces or commas between them, instead of a text
  uint32_t tokens = 200;
  SamplingOptions sampling = {.temperature = 0.8, .top_k = 40};
  std::vector<std::string> stop;      // texts that end the text
  std::vector<uint32_t> stop_tokens;  // tokens that end it
};

/// How a worker's process is to end.
struct WorkerOutcome {
  ExitCode code = ExitCode::kOk;
  bool restart = false;  // as a fresh process with the same arguments, in its place
};

/// Trains (or evaluates) until the run is finished or a signal comes.
WorkerOutcome RunWorker(const WorkerFlags& flags, const Logger& log);

/// The same as one rank of an island: rank 0 is the worker, and the others do what it tells them. Returns the
/// exit code of the process, which a supervisor may read (kIslandBroken, kIslandRestart).
int RunRank(const WorkerFlags& flags, const IslandPlace& place, const Logger& log);

/// Prints what the model writes after the prompt, while it writes.
ExitCode GenerateText(const GenerateFlags& flags, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_COMMANDS_H_
