#ifndef ATOLL_WORKER_APP_EVAL_EVAL_FLAGS_H_
#define ATOLL_WORKER_APP_EVAL_EVAL_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/progress_bar.h"
#include "worker/app/loaded_model.h"

namespace atl {

struct EvalFlags {
  /// What all models have in common. Without a name below, the only model is that of the live run.
  ModelSource source;
  std::vector<std::string> models;  // files or folders
  std::vector<uint64_t> versions;
  std::vector<std::string> checkpoints;

  std::string tokenizer;  // a name or a file; empty: the run's, or that in the model's folder
  std::string tokenizer_pattern;
  std::optional<uint32_t> begin_token;

  std::vector<std::string> data;       // dataset folders and token files
  std::vector<std::string> texts;      // text files
  std::vector<std::string> choices;    // llm.c's multiple-choice files
  std::vector<std::string> hellaswag;  // JSON lines
  std::vector<std::string> mmlu;       // files or folders
  std::string mmlu_examples;
  uint32_t shots = 0;

  uint64_t limit = 0;         // questions of a file; 0: all
  uint64_t limit_tokens = 0;  // of a text; 0: all
  uint32_t stride = 0;        // 0: the model's context
  bool json = false;
  ProgressStyle progress = ProgressStyle::kPlain;
};

/// Adds the command `eval`. `flags` outlives `app`.
CLI::App* AddEvalCommand(CLI::App& app, EvalFlags& flags);
/// Once it was parsed: which port the options mean, and whether there is something to do. Throws
/// CLI::ValidationError.
void SettleEvalFlags(const CLI::App& command, EvalFlags& flags);

/// Measures each model on each file and prints the result.
ExitCode EvaluateModels(const EvalFlags& flags, const Logger& log);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_EVAL_FLAGS_H_
