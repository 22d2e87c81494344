#include "client/engine/worker_service.h"

#include <string_view>
#include <utility>

#include "client/engine/caller_replica.h"
#include "client/engine/manifest_check.h"
#include "client/engine/option_words.h"
#include "client/engine/run_text.h"
#include "client/engine/status_code.h"
#include "client/setup/setup_error.h"
#include "common/status.h"
#include "common/thread.h"

namespace atl {
namespace {

constexpr Duration kStatusEvery = Seconds(0.1);

uint32_t ReasonOf(SyncEnd how) {
  switch (how) {
    case SyncEnd::kFinished:
      return ATL_END_FINISHED;
    case SyncEnd::kDrained:
      return ATL_END_DRAINED;
    case SyncEnd::kRestart:
      return ATL_END_RESTART;
    default:
      return ATL_END_STOPPED;
  }
}

const char* SentenceOf(SyncEnd how) {
  switch (how) {
    case SyncEnd::kFinished:
      return "the run is finished";
    case SyncEnd::kRunStopped:
      return "an operator stopped the run";
    case SyncEnd::kDrained:
      return "drained; the last push counted";
    case SyncEnd::kRestart:
      return "told to restart: open a new client with the same options";
    default:
      return "stopped without a push";
  }
}

}  // namespace

WorkerService::WorkerService(WorkerHome home, Manifest manifest, CallerChannel* channel, const Logger& log)
    : home_(std::move(home)),
      manifest_(std::move(manifest)),
      channel_(channel),
      log_(log.With("worker", home_.options.join.worker)),
      page_(channel->status.bytes()) {}

absl::StatusOr<std::unique_ptr<WorkerService>> WorkerService::Open(const EngineOptions& options,
                                                                   Manifest manifest, CallerChannel* channel,
                                                                   const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckMemberFlags(options.member));
  ATOLL_ASSIGN_OR_RETURN(WorkerHome home, OpenWorkerHome(options.member, log));
  home.options.join.device = {.device = options.device,
                              .device_name = options.device_name,
                              .threads = static_cast<uint32_t>(options.threads)};
  if (!options.data_fingerprint.empty())
    home.options.join.dataset = DatasetSummary{.fingerprint = options.data_fingerprint};
  home.options.join.manifest = manifest;
  std::unique_ptr<WorkerService> service(
      new WorkerService(std::move(home), std::move(manifest), channel, log));
  ATOLL_ASSIGN_OR_RETURN(
      service->process_,
      WorkerProcess::Create(
          {.program = "atoll-engine",
           .flags = options.member,
           .worker = std::move(service->home_.options),
           .state = &service->home_.state,
           .make_replica = [it = service.get()](const JoinedRun& run) { return it->MakeReplica(run); },
           .log = service->log_},
          &service->clock_));
  return service;
}

absl::StatusOr<std::unique_ptr<Replica>> WorkerService::MakeReplica(const JoinedRun& run) {
  ATOLL_RETURN_IF_ERROR(CheckAgainstRun(run, manifest_));
  auto replica = std::make_unique<CallerReplica>(
      CallerParts{.link = link_.get(),
                  .values = &channel_->values,
                  .state = &channel_->state,
                  .progress = [this] { return process_->worker().worker_status().progress(); },
                  .said_nothing_held_out = &said_nothing_held_out_,
                  .log = log_,
                  .failed = [this](const absl::Status& why) { Failed(why); }},
      manifest_);
  ATOLL_RETURN_IF_ERROR(replica->Introduce(RunJson(run, manifest_)));
  return replica;
}

void WorkerService::Failed(const absl::Status& why) {
  {
    const MutexLock lock(&mutex_);
    failure_.Update(why);
  }
  link_->GiveUp();
  process_->drain()->Stop();
}

CallerRequests WorkerService::Requests() {
  const auto drain = [this] {
    {
      const MutexLock lock(&mutex_);
      drain_asked_ = true;
    }
    process_->drain()->Drain();
  };
  const auto stop_because = [this](std::string_view why) {
    {
      const MutexLock lock(&mutex_);
      stop_asked_ = true;
    }
    process_->drain()->Stop(why);
  };
  const auto stop = [stop_because] { stop_because(""); };
  const auto gone = [this, stop_because] {
    log_.Warning("the training process has ended or closed its client; leaving without a push");
    stop_because("its training process has ended or closed its client");
  };
  return {.drain = drain, .stop = stop, .gone = gone};
}

void WorkerService::ShowStatus(const std::string& last_end) {
  const std::string json =
      StatusJson(process_->worker().worker_status().progress(), process_->totals(), last_end);
  const MutexLock lock(&mutex_);
  page_.Write(json);
}

void WorkerService::KeepStatusFresh() {
  SetThreadName("status");
  do {
    ShowStatus("");
  } while (between_statuses_.SleepFor(kStatusEvery));
}

ipc::Event WorkerService::EndEvent(const WorkerEnd& end) {
  const MutexLock lock(&mutex_);
  ipc::Event event{.kind = ATL_EVENT_END, .exit_code = ToInt(end.code)};
  const absl::Status& status = failure_.ok() ? end.status : failure_;
  // A stop also ends the call in progress, which then is cancelled.
  const bool stopped = stop_asked_ && failure_.ok() && absl::IsCancelled(status);
  if (!status.ok() && !stopped) {
    event.end_code = CodeForCaller(status);
    event.end_reason = ATL_END_FAILED;
    event.text = WithOptionWords(std::string(status.message()));
    if (!failure_.ok()) event.exit_code = ToInt(ExitCode::kInternal);
    return event;
  }
  const SyncEnd how = end.how.value_or(SyncEnd::kStopped);
  event.end_reason = ReasonOf(how);
  event.text = SentenceOf(how);
  if (how != SyncEnd::kStopped) return event;
  if (stop_asked_) {
    event.end_code = ATL_CANCELLED;
    event.exit_code = ToInt(ExitCode::kOk);
  } else if (drain_asked_ && !process_->drain()->ran_out()) {
    event.end_reason = ATL_END_DRAINED;
    event.text = "drained; there was nothing to push";
  }
  return event;
}

ExitCode WorkerService::Run(int64_t caller) {
  link_ = std::make_unique<CallerLink>(&channel_->socket, caller, Requests());
  Thread status([this] { KeepStatusFresh(); });
  const WorkerEnd end = process_->Run();
  between_statuses_.Interrupt();
  status.Join();
  const ipc::Event event = EndEvent(end);
  if (event.end_reason == ATL_END_FAILED) {
    log_.Error(event.text);
  } else {
    log_.Info("done", {{"because", event.text}});
  }
  ShowStatus(event.text);
  link_->Tell(event);
  return static_cast<ExitCode>(event.exit_code);
}

}  // namespace atl
