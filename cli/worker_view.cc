#include "cli/worker_view.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "cli/loss_text.h"
#include "cli/text.h"
#include "common/clock.h"
#include "common/human.h"

namespace atl {
namespace {

std::string RoleName(v1::Role role) {
  const std::string name = v1::Role_Name(role);
  return absl::AsciiStrToLower(name.substr(name.rfind('_') + 1));
}

std::string DurationText(double seconds) { return HumanDuration(Seconds(std::max(0.0, seconds))); }

std::string DataText(const v1::DataAssignment& data) {
  if (data.partitions() == 0) return "its own";
  return absl::StrFormat(
      "part %d of %d, %s samples of it consumed; a round reads the part that is most behind, "
      "of this one and those without a worker",
      data.partition(), data.partitions(), HumanCount(static_cast<double>(data.samples_consumed())));
}

using Times = google::protobuf::RepeatedPtrField<v1::TimeSpent>;

/// "compute 80 %, wait 15 %, push 5 % of 2m 10s": the largest shares first. Omits shares below half a
/// percent.
std::string SharesText(const Times& times) {
  std::vector<std::pair<double, std::string>> parts;
  double all = 0;
  for (const v1::TimeSpent& one : times) {
    const std::string name = v1::TimeUse_Name(one.use());
    parts.emplace_back(one.seconds(), absl::AsciiStrToLower(name.substr(sizeof "TIME_USE_" - 1)));
    all += one.seconds();
  }
  if (all <= 0) return "-";
  std::ranges::sort(parts, std::greater<>());
  std::string text;
  for (const auto& [seconds, name] : parts) {
    if (seconds < 0.005 * all) continue;
    absl::StrAppendFormat(&text, "%s%s %.0f %%", text.empty() ? "" : ", ", name, 100 * seconds / all);
  }
  return text + " of " + DurationText(all);
}

/// The shares that an older worker reports.
std::string TimeText(const v1::Progress& progress) {
  if (!progress.training_time().empty()) return SharesText(progress.training_time());
  Times times;
  const auto add = [&times](v1::TimeUse use, double seconds) {
    times.Add()->set_use(use);
    times.rbegin()->set_seconds(seconds);
  };
  add(v1::TIME_USE_COMPUTE, progress.compute_seconds());
  add(v1::TIME_USE_PUSH, progress.exchange_seconds());
  add(v1::TIME_USE_WAIT, progress.wait_seconds());
  return SharesText(times);
}

std::string LossText(const v1::Progress& progress) {
  if (progress.loss() == 0) return absl::StrFormat("not known, learning rate %.3g", progress.learning_rate());
  return absl::StrFormat("%s, gradient norm %.3g, learning rate %.3g", LossNumber(progress.loss(), 0, 4),
                         progress.gradient_norm(), progress.learning_rate());
}

std::string StateText(const v1::WorkerStatus& worker) {
  std::string text = worker.state();
  if (worker.banned()) text += ", banned";
  if (worker.state() == "active") {
    text += absl::StrFormat(", last heartbeat %s ago, lease for %s more",
                            DurationText(worker.seconds_since_heartbeat()),
                            DurationText(worker.lease_remaining_s()));
  }
  return text;
}

std::string DeviceText(const v1::Capabilities& capabilities) {
  // The worker may report it when it joins, and the coordinator does not store it.
  if (capabilities.device().empty()) return "not reported since the coordinator started";
  std::string text = capabilities.device();
  if (!capabilities.device_name().empty())
    text += " " + capabilities.device_name();  // unknown to workers in Python
  if (capabilities.device_memory_bytes() > 0) {
    text += absl::StrFormat(", %s of its own", HumanBytes(capabilities.device_memory_bytes()));
  }
  text += ", " + Counted(capabilities.threads(), "thread");
  if (capabilities.ranks() > 1) text = absl::StrFormat("%d ranks, each: %s", capabilities.ranks(), text);
  if (capabilities.memory_bytes() > 0) {
    text += absl::StrFormat(", %s of main memory", HumanBytes(capabilities.memory_bytes()));
  }
  return text;
}

std::string SpeedText(const v1::WorkerStatus& worker) {
  std::string text = HumanRate(worker.progress().tokens_per_second(), "tok") + " reported by the worker";
  if (worker.steps_per_second() > 0) {
    text += absl::StrFormat(", %.3g inner steps/s measured", worker.steps_per_second());
  }
  if (const std::optional<double> share = ModelFlopsUtilization(worker.progress())) {
    text += absl::StrFormat(", %.1f %% of the device's measured %s", *share * 100,
                            HumanRate(worker.progress().peak_flops_per_second(), "FLOP"));
  }
  return text;
}

std::string PhaseText(const v1::Progress& progress) {
  std::string text = absl::StrFormat("%s on version %d, inner step %d of %d", PhaseName(progress.phase()),
                                     progress.base_version(), progress.step(), progress.steps());
  if (!progress.waiting_for().empty()) text += ", " + ActivityText(progress);
  return text;
}

std::string OffenceText(const v1::OffenceStatus& offences) {
  std::string text = absl::StrFormat("in %d of its last %d rounds", offences.recent(), offences.rounds());
  if (!offences.kinds().empty()) text += " (" + offences.kinds() + ")";
  return text +
         absl::StrFormat("; in total %d not finite, %d replayed, %d by norm, %d by distance, %d by direction",
                         offences.not_finite(), offences.replayed(), offences.norm(), offences.distance(),
                         offences.direction());
}

std::string LastLookText(const v1::OffenceStatus& offences) {
  std::string text = absl::StrFormat("norm %.3g times the median, scaled by %.3g (guard) and %.3g (clip)",
                                     offences.last_norm(), offences.last_guard(), offences.last_clip());
  if (!offences.measured()) return text;
  return text + absl::StrFormat("; %.3g times the median distance from the merge, cosine %.2f",
                                offences.last_distance(), offences.last_cosine());
}

}  // namespace

std::optional<double> ModelFlopsUtilization(const v1::Progress& progress) {
  if (progress.tokens_per_second() <= 0 || progress.peak_flops_per_second() <= 0) return std::nullopt;
  if (progress.model_flops_per_second() <= 0) return std::nullopt;
  return progress.model_flops_per_second() / progress.peak_flops_per_second();
}

std::vector<std::string> DescribeWorker(const v1::WorkerStatus& worker) {
  const v1::Progress& progress = worker.progress();
  std::vector<std::pair<const char*, std::string>> rows = {
      {"name", worker.name()},
      {"role", RoleName(worker.role())},
      {"state", StateText(worker)},
      {"incarnation", absl::StrFormat("%d", worker.incarnation())},
      {"device", DeviceText(worker.capabilities())},
      {"software version", worker.capabilities().software_version()},
      {"data", DataText(worker.data())},
      {"phase", PhaseText(progress)},
      {"steps per round", absl::StrFormat("%d", worker.inner_steps())},
      {"speed", SpeedText(worker)},
      {"loss", LossText(progress)},
      {"time", TimeText(progress)},
      {"memory in use", HumanBytes(progress.memory_bytes())},
      {"contributions", absl::StrFormat("%d accepted, %d rejected since the coordinator started",
                                        worker.contributions_accepted(), worker.contributions_refused())},
      {"moved", absl::StrFormat("%s up, %s down since the coordinator started",
                                HumanBytes(worker.push_bytes()), HumanBytes(worker.pull_bytes()))},
      {"confirmed version", absl::StrFormat("%d", worker.confirmed_version())},
  };
  if (!progress.exchange_time().empty()) {
    rows.emplace_back("exchange threads", SharesText(progress.exchange_time()));
  }
  if (worker.has_offences()) {
    rows.emplace_back("offences", OffenceText(worker.offences()));
    rows.emplace_back("last contribution", LastLookText(worker.offences()));
  }
  const std::string command = CommandName(worker.pending_command());
  if (!command.empty()) rows.emplace_back("pending command", command);
  std::vector<std::string> lines;
  for (const auto& [name, value] : rows)
    lines.push_back(absl::StrFormat(" %-20s %s", name, Printable(value)));
  return lines;
}

}  // namespace atl
