#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "cli/device_advice.h"
#include "cli/plan.h"
#include "common/human.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

std::string Count(uint64_t n) { return HumanCount(static_cast<double>(n)); }
std::string Span(double seconds) { return HumanDuration(Seconds(seconds)); }
std::string Rate(double bits) { return HumanCount(bits) + "bit/s"; }

class Lines {
 public:
  void Title(const std::string& text) { lines_.push_back(text); }
  void Row(const std::string& name, const std::string& value, const std::string& note = "") {
    lines_.push_back(absl::StrFormat("   %-26s %12s%s%s", name, value, note.empty() ? "" : "   ", note));
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void CoordinatorRows(const RunPlan& plan, Lines& lines) {
  const CoordinatorMemory& memory = plan.coordinator;
  lines.Title("memory of the coordinator");
  lines.Row("parameters", HumanBytes(memory.parameters));
  lines.Row("outer optimizer", HumanBytes(memory.state));
  lines.Row("next version", HumanBytes(memory.next));
  if (memory.published > 0)
    lines.Row("published encodings", HumanBytes(memory.published), "of the head and of the next version");
  lines.Row("transfers in progress", HumanBytes(memory.streams));
  lines.Row("program and indices", HumanBytes(memory.fixed));
  const double models = static_cast<double>(memory.usual()) / static_cast<double>(memory.parameters);
  // For a small model, the program is the larger part.
  lines.Row("usual", HumanBytes(memory.usual()),
            models < 20 ? absl::StrFormat("%.2f times the model", models) : "");
  lines.Row("a slow reader adds", HumanBytes(memory.old_snapshot),
            "the previous version, until the reader has it");
  lines.Row("peak", HumanBytes(memory.peak()), "the maximum during training");
  lines.Row("after an overflow", HumanBytes(memory.worst()),
            "if the run diverges and its state is read back from disk");
  lines.Row(
      "memory limit", HumanBytes(plan.bounds.limit),
      absl::StrFormat("give the container or the machine at least this; includes %s for misbehaving clients",
                      HumanBytes(plan.bounds.strangers)));
  lines.Row("mapped contributions", HumanBytes(memory.mapped), "page cache, which the kernel can reclaim");
}

/// The memory on the device of each of the planned ranks.
void DeviceRows(const RunPlan& plan, Lines& lines) {
  const WorkerMemory& memory = *plan.worker;
  const uint64_t ranks = plan.assumptions.ranks;
  const uint64_t encoders = memory.device_encoders;
  if (encoders > 0) {
    lines.Row("encoders of a GPU", HumanBytes(encoders),
              "base, residual, payload; and " + HumanBytes(memory.pinned) + " of pinned memory on the host");
  }
  const uint64_t own = OnDeviceOfRank(memory, ranks);
  lines.Row(ranks > 1 ? absl::StrFormat("on each of %d devices", ranks) : "on the device", HumanBytes(own),
            plan.devices);
  const auto of_ranks = [&](uint64_t count) { return HumanBytes(OnDeviceOfRank(memory, count)); };
  if (encoders > 0) {
    lines.Row("without the encoders", HumanBytes(own - encoders),
              ranks > 1 ? "with --encode-on-cpu"
                        : "with --encode-on-cpu; of 8 ranks: " +
                              HumanBytes(OnDeviceOfRank(memory, 8) - encoders) + " on each device");
  }
  if (memory.optimizer > 0 && ranks == 1) {
    lines.Row("device of 2 or 8 ranks", of_ranks(2) + ", " + of_ranks(8),
              "on each device; the ranks of a worker share the inner optimizer's state");
  }
}

void WorkerRows(const RunPlan& plan, Lines& lines) {
  if (!plan.worker) return;
  const WorkerMemory& memory = *plan.worker;
  const uint64_t ranks = plan.assumptions.ranks;
  const uint64_t share = OptimizerOfRank(memory, ranks);
  lines.Title(ranks > 1 ? absl::StrFormat("memory of rank 0 of %d ranks of a worker (estimate)", ranks)
                        : "memory of a worker (estimate)");
  lines.Row("program and LibTorch", HumanBytes(memory.program), "on a CPU; CUDA's libraries need more");
  lines.Row("parameters, gradients", HumanBytes(memory.parameters + memory.gradients));
  lines.Row("inner optimizer", HumanBytes(share),
            ranks > 1 ? "its part of " + HumanBytes(memory.optimizer) : "");
  if (memory.low_precision > 0) lines.Row("bf16 weights", HumanBytes(memory.low_precision));
  lines.Row("activations", HumanBytes(memory.activations));
  lines.Row("exchange", HumanBytes(memory.exchange), "base, residual, pseudo-gradient, payloads");
  if (memory.kept > 0)
    lines.Row("being saved", HumanBytes(memory.kept), "optimizer state, to the state directory");
  if (memory.evaluation > 0)
    lines.Row("while it evaluates", HumanBytes(memory.evaluation), "its local parameters");
  lines.Row("in all", HumanBytes(memory.total() - memory.optimizer + share),
            ranks > 1 ? "of rank 0 on a CPU; the other ranks need less" : "of a worker on a CPU");
  DeviceRows(plan, lines);
  if (plan.token_operations > 0) {
    lines.Row("operations of a token", HumanCount(plan.token_operations) + "FLOP",
              absl::StrFormat("forward and backward; an inner step of a %s has %sFLOP",
                              ranks > 1 ? "rank" : "worker",
                              HumanCount(plan.token_operations * static_cast<double>(plan.step_tokens))));
  }
}

void DiskRows(const RunPlan& plan, Lines& lines) {
  const PlannedDisk& disk = plan.disk;
  lines.Title("disk of the coordinator");
  lines.Row("one version", HumanBytes(disk.version_bytes));
  lines.Row("versions", HumanBytes(disk.version_bytes * disk.versions),
            absl::StrFormat("%d retained, one being written", disk.versions - 1));
  lines.Row("contributions", HumanBytes(disk.contribution_bytes), "of retained rounds and the open one");
  lines.Row(
      "automatic checkpoints", HumanBytes(disk.checkpoint_bytes * disk.checkpoints),
      absl::StrFormat(
          "%d at the end of the run%s, each with %s", disk.checkpoints,
          disk.kept_checkpoints > 0 ? absl::StrFormat(" (%d kept permanently)", disk.kept_checkpoints) : "",
          Counted(disk.versions, "version")));
  lines.Row("data directory", HumanBytes(disk.directory_bytes), "logs and indices, without any tensor");
  lines.Row("kept free", HumanBytes(disk.reserve_bytes),
            "for small records; with less space, no version is stored");
  lines.Row("peak", HumanBytes(disk.peak()), "give the data directory at least this");
}

std::string WorkersText(const PlanAssumptions& assumptions) {
  const std::string workers = Counted(assumptions.workers, "worker");
  return assumptions.ranks > 1 ? absl::StrFormat("%s of %d ranks", workers, assumptions.ranks) : workers;
}

void TimeRows(const RunPlan& plan, Lines& lines) {
  const PlanAssumptions& a = plan.assumptions;
  const PlannedTime& time = plan.time;
  lines.Title(absl::StrFormat("a round of %s at %s each, %s at the coordinator, %s round trip",
                              WorkersText(a), Rate(a.bandwidth_bits_per_s),
                              Rate(a.coordinator_bandwidth_bits_per_s), Span(a.latency_s)));
  lines.Row("tokens", Count(plan.round_tokens),
            plan.rounds == plan.run_rounds
                ? ""
                : absl::StrFormat("the run's %s are spent after %s; run.rounds is %d",
                                  Count(plan.total_tokens), Counted(plan.rounds, "round"), plan.run_rounds));
  lines.Row("up", HumanBytes(plan.push_bytes), "per worker: " + Span(time.push_s));
  lines.Row("down", HumanBytes(plan.pull_bytes), "per worker: " + Span(time.pull_s));
  lines.Row("merge and commit", Span(time.merge_s));
  const double ratio =
      static_cast<double>(plan.data_parallel_bytes) / static_cast<double>(plan.push_bytes + plan.pull_bytes);
  lines.Row("data-parallel would move", HumanBytes(plan.data_parallel_bytes),
            absl::StrFormat("per worker: %.0f times as much", ratio));
  if (time.overlapped)
    lines.Row("one fragment's exchange", Span(time.exchange_s()), "during the inner steps");
  if (time.compute_s <= 0) {
    // The inner steps of a round must outlast an exchange: once in overlapped mode, 19 times in blocking
    // mode.
    const double needed = time.overlapped ? std::max(time.exchange_s(), time.link_s) : 19 * time.exchange_s();
    lines.Row("exchange", Span(time.exchange_s()),
              absl::StrFormat("for 95 %% utilisation a step must take %s; give --step-ms for the rest",
                              Span(needed / plan.inner_steps)));
    return;
  }
  lines.Row("inner steps", Span(time.compute_s),
            absl::StrFormat("%d of %s", plan.inner_steps, Span(a.step_s)));
  lines.Row("a worker's own work", Span(time.own_s), time.overlapped ? "copies" : "encoding, saving, copies");
  if (time.evaluate_s > 0) {
    lines.Row("evaluation", Span(time.evaluate_s), "per round, on the worker that evaluates");
  }
  const char* const round = time.starved() ? "pushes are skipped; the whole run: " : "the whole run: ";
  lines.Row("round", Span(time.round_s()), round + Span(time.round_s() * static_cast<double>(plan.rounds)));
  lines.Row("compute utilisation", absl::StrFormat("%.1f %%", 100 * time.utilisation()),
            absl::StrFormat("data-parallel over these links: %.1f %%", 100 * plan.data_parallel_utilisation));
}

void PrivacyRows(const RunPlan& plan, Lines& lines) {
  if (!plan.privacy) return;
  const PlannedPrivacy& privacy = *plan.privacy;
  lines.Title(absl::StrFormat("privacy after %s: clip norm %.4g, noise multiplier %.4g, delta %.2g",
                              Counted(plan.rounds, "round"), privacy.clip_norm, privacy.noise_multiplier,
                              privacy.delta));
  lines.Row("epsilon", absl::StrFormat("%.4g", privacy.epsilon), "for readers of a worker's pushes");
  if (privacy.published_epsilon) {
    lines.Row(
        "epsilon", absl::StrFormat("%.4g", *privacy.published_epsilon),
        absl::StrFormat("for readers of versions only, with %d equal workers", plan.assumptions.workers));
  }
}

using Json = nlohmann::ordered_json;

Json PrivacyJson(const PlannedPrivacy& privacy) {
  Json json = {{"clip_norm", privacy.clip_norm},
               {"noise_multiplier", privacy.noise_multiplier},
               {"delta", privacy.delta},
               {"epsilon", privacy.epsilon}};
  if (privacy.published_epsilon) json["published_epsilon"] = *privacy.published_epsilon;
  return json;
}

Json BoundsJson(const MemoryBounds& bounds) {
  return {{"limit", bounds.limit},
          {"run", bounds.run},
          {"strangers", bounds.strangers},
          {"incomplete_messages", bounds.silent_bytes},
          {"waiting_messages", bounds.held_bytes},
          {"buffers", bounds.buffers},
          {"connections", bounds.connections},
          {"streams", bounds.open_streams}};
}

Json CoordinatorJson(const CoordinatorMemory& memory) {
  return {{"parameters", memory.parameters},
          {"state", memory.state},
          {"next", memory.next},
          {"published", memory.published},
          {"streams", memory.streams},
          {"fixed", memory.fixed},
          {"usual", memory.usual()},
          {"old_snapshot", memory.old_snapshot},
          {"peak", memory.peak()},
          {"reload", memory.reload},
          {"worst", memory.worst()},
          {"mapped", memory.mapped}};
}

Json WorkerJson(const WorkerMemory& memory, uint64_t ranks) {
  return {{"program", memory.program},
          {"parameters", memory.parameters},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"low_precision", memory.low_precision},
          {"activations", memory.activations},
          {"exchange", memory.exchange},
          {"kept", memory.kept},
          {"evaluation", memory.evaluation},
          {"device_encoders", memory.device_encoders},
          {"pinned", memory.pinned},
          {"on_device", memory.on_device()},
          {"on_device_of_2_ranks", OnDeviceOfRank(memory, 2)},
          {"on_device_of_8_ranks", OnDeviceOfRank(memory, 8)},
          {"on_each_device", OnDeviceOfRank(memory, ranks)},
          {"total", memory.total()}};
}

Json DiskJson(const PlannedDisk& disk) {
  return {{"version", disk.version_bytes},
          {"versions", disk.versions},
          {"contributions", disk.contribution_bytes},
          {"checkpoints", disk.checkpoints},
          {"kept_checkpoints", disk.kept_checkpoints},
          {"checkpoint", disk.checkpoint_bytes},
          {"directory", disk.directory_bytes},
          {"reserve", disk.reserve_bytes},
          {"peak", disk.peak()}};
}

Json TimeJson(const RunPlan& plan) {
  const PlannedTime& time = plan.time;
  return {{"pull", time.pull_s},
          {"compute", time.compute_s},
          {"push", time.push_s},
          {"merge", time.merge_s},
          {"link", time.link_s},
          {"own", time.own_s},
          {"evaluate", time.evaluate_s},
          {"overlapped", time.overlapped},
          {"round", time.round_s()},
          {"utilisation", time.utilisation()},
          {"data_parallel_utilisation", plan.data_parallel_utilisation}};
}

Json AssumptionsJson(const PlanAssumptions& assumptions) {
  return {{"workers", assumptions.workers},
          {"ranks", assumptions.ranks},
          {"bandwidth_bits_per_s", assumptions.bandwidth_bits_per_s},
          {"coordinator_bandwidth_bits_per_s", assumptions.coordinator_bandwidth_bits_per_s},
          {"latency_s", assumptions.latency_s},
          {"step_s", assumptions.step_s},
          {"evaluation_batch_s", assumptions.evaluation_batch_s}};
}

}  // namespace

std::vector<std::string> RenderPlan(const RunPlan& plan) {
  Lines lines;
  lines.Title(absl::StrFormat("%s: %s parameters, %s of %s, %s tokens", plan.name, Count(plan.parameters),
                              Counted(plan.rounds, "round"), Counted(plan.inner_steps, "inner step"),
                              Count(plan.total_tokens)));
  for (const auto& [name, elements] : plan.groups) {
    lines.Row(name, Count(elements),
              absl::StrFormat("%.1f %%",
                              100 * static_cast<double>(elements) / static_cast<double>(plan.parameters)));
  }
  if (plan.passes) {
    uint64_t tokens = 0;
    for (const TextShare& text : plan.assumptions.texts) tokens += text.tokens;
    const size_t texts = plan.assumptions.texts.size();
    lines.Row(
        "passes over the text", absl::StrFormat("%.3g", *plan.passes),
        Count(tokens) + " training tokens" +
            (texts > 1 ? absl::StrFormat(" in a mixture of %d datasets; of the one read most", texts) : ""));
  }
  CoordinatorRows(plan, lines);
  WorkerRows(plan, lines);
  DiskRows(plan, lines);
  TimeRows(plan, lines);
  PrivacyRows(plan, lines);
  for (const std::string& warning : plan.warnings) lines.Title("warning: " + warning);
  return lines.Take();
}

std::string PlanToJson(const RunPlan& plan) {
  Json groups = Json::object();
  for (const auto& [name, elements] : plan.groups) groups[name] = elements;
  const Json bytes = {
      {"push", plan.push_bytes}, {"pull", plan.pull_bytes}, {"data_parallel", plan.data_parallel_bytes}};
  Json json = {{"name", plan.name},
               {"rounds", plan.rounds},
               {"inner_steps", plan.inner_steps},
               {"total_tokens", plan.total_tokens},
               {"round_tokens", plan.round_tokens},
               {"assumptions", AssumptionsJson(plan.assumptions)},
               {"parameters", plan.parameters},
               {"elements", plan.elements},
               {"groups", groups},
               {"token_operations", plan.token_operations},
               {"round_bytes", bytes},
               {"coordinator_memory", CoordinatorJson(plan.coordinator)},
               {"coordinator_bounds", BoundsJson(plan.bounds)},
               {"disk", DiskJson(plan.disk)},
               {"round_seconds", TimeJson(plan)},
               {"warnings", plan.warnings}};
  if (plan.worker) json["worker_memory"] = WorkerJson(*plan.worker, plan.assumptions.ranks);
  if (plan.passes) json["passes"] = *plan.passes;
  if (plan.privacy) json["privacy"] = PrivacyJson(*plan.privacy);
  return json.dump(2);
}

}  // namespace atl
