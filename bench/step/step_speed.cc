// Times inner steps of the C++ trainer on demand, for bench/step/step_speed.py and gpt2_step.py: every line
// "N" on the standard input runs N steps and answers with one line of N durations in milliseconds. Steps are
// taken as a worker takes them: as many at once as the replica asks for, with equal shares of their time.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/step/kernel_trace.h"
#include "common/clock.h"
#include "worker/torch/blas_kernels.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

TorchReplicaOptions SmallNanoGpt() {
  TorchReplicaOptions options;
  options.run.workers = 1;
  options.run.rounds = 1;
  options.run.model = {.layers = 4, .heads = 4, .width = 128, .context = 64, .vocabulary = 256};
  options.run.inner.steps = 1;
  options.run.inner.learning_rate = 1e-3;
  options.run.inner.batch = 12;
  options.device = "cpu";
  return options;
}

// `trace`: the file for a trace of the second line's steps; empty: none.
int ServeSteps(TorchReplica& replica, const std::string& trace) {
  const SystemClock clock{};
  int steps = 0;
  for (int lines = 1; std::cin >> steps; ++lines) {
    const bool tracing = !trace.empty() && lines == 2 && StartTrace();
    std::string line;
    for (int done = 0; done < steps;) {
      const int now = std::min(steps - done, static_cast<int>(replica.steps_at_once()));
      std::vector<InnerStepResult> results;
      const MonoTime begin = clock.Now();
      const absl::Status taken =
          replica.InnerSteps(std::vector<double>(static_cast<size_t>(now), 1e-3), results);
      if (!taken.ok()) {
        std::cerr << taken << "\n";
        return 1;
      }
      const double each_ms = ToSeconds(clock.Now() - begin) * 1e3 / now;
      for (int i = 0; i < now; ++i) line += std::to_string(each_ms) + " ";
      done += now;
    }
    if (tracing) FinishTrace(trace);
    std::cout << line << std::endl;
  }
  return 0;
}

int Main(int argc, char** argv) {
  const SystemClock clock{};
  TorchReplicaOptions options = SmallNanoGpt();
  options.clock = &clock;
  GptOptions& model = options.run.model.gpt();
  bool bf16 = false;
  std::string trace;
  CLI::App app("Times inner steps; driven by bench/step/step_speed.py.");
  app.add_option("--tokens", options.dataset_folder)->required();
  app.add_option("--threads", options.threads);
  app.add_option("--device", options.device);
  app.add_option("--layers", model.layers);
  app.add_option("--heads", model.heads);
  app.add_option("--width", model.width);
  app.add_option("--context", model.context);
  app.add_option("--vocabulary", model.vocabulary);
  app.add_option("--batch", options.run.inner.batch);
  app.add_option("--accumulation", options.run.inner.accumulation);
  app.add_flag("--bf16", bf16);
  app.add_flag("--isolate-documents", options.run.data.isolate_documents, "data.isolate_documents");
  app.add_option("--trace", trace, "Write a trace of the second line's steps to this file");
  CLI11_PARSE(app, argc, argv);
  if (bf16) options.run.inner.precision = Precision::kBf16;
  const absl::StatusOr<std::unique_ptr<TorchReplica>> replica = CreateTorchReplica(options);
  if (!replica.ok()) {
    std::cerr << replica.status() << "\n";
    return 1;
  }
  return ServeSteps(**replica, trace);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::RestartWithBestBlasKernels(std::getenv("OPENBLAS_CORETYPE"), argv);
  return atl::Main(argc, argv);
}
