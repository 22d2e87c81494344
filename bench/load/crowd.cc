#include "bench/load/crowd.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/rpc/channel.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "common/status_detail.h"
#include "core/codec.h"
#include "tests/fakes/http_get.h"

namespace atl {
namespace {

constexpr uint32_t kBeatThreads = 16;
constexpr Duration kBeatEvery = Seconds(5);  // a third of the usual lease
constexpr size_t kErrorsKept = 5;

double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The least bound of the scraped histogram that 99 of 100 observations lie below, in ms.
double P99Of(const std::string& scrape, const std::string& name) {
  std::istringstream lines(scrape);
  std::vector<std::pair<double, double>> buckets;
  const std::string prefix = name + "_bucket{le=\"";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix)) continue;
    buckets.emplace_back(std::strtod(line.c_str() + prefix.size(), nullptr),
                         std::stod(line.substr(line.rfind(' '))));
  }
  for (const auto& [bound, count] : buckets) {
    if (count >= 0.99 * buckets.back().second) return 1000 * bound;
  }
  return 0;
}

/// The coordinator wants the same contribution again in a moment, as a worker sends it.
bool AsksAgainLater(const absl::Status& status) {
  const std::optional<StatusDetail> detail = DetailOf(status);
  return detail.has_value() && detail->retry_after.has_value();
}

void OnThreads(uint32_t count, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Crowd>> Crowd::Start(const LoadSettings& settings) {
  std::unique_ptr<Crowd> crowd(new Crowd(settings));
  const Recipe recipe{.push = CodecKind::kBf16, .pull = CodecKind::kBf16, .name = "bf16"};
  ATOLL_ASSIGN_OR_RETURN(crowd->model_, MakeSyntheticModel(settings.mib, settings.pushing, recipe));
  ATOLL_ASSIGN_OR_RETURN(crowd->program_,
                         CoordinatorProgram::Start(settings.program, settings.dir, crowd->model_.yaml));
  crowd->payload_ = EncodedAs(CodecKind::kBf16, PseudoGradient(crowd->model_.elements, 1));
  crowd->payload_crc32c_ = Crc32c(crowd->payload_);
  crowd->members_.resize(settings.workers);
  ATOLL_RETURN_IF_ERROR(crowd->Join(0));
  ATOLL_RETURN_IF_ERROR(crowd->Seed());
  ATOLL_RETURN_IF_ERROR(crowd->JoinAll());
  return crowd;
}

Crowd::~Crowd() { members_.clear(); }

absl::Status Crowd::Join(uint32_t index) {
  Member& member = members_[index];
  const std::string& address = program_->data_address();
  member.connection = std::make_unique<GrpcConnection>(GrpcConnectionOptions{.address = address},
                                                       MakeChannel({.address = address}), &clock_);
  JoinCall parameters{.worker = absl::StrCat("w", index), .secret = "0123456789abcdef"};
  parameters.manifest_hash = ManifestHash(model_.manifest);
  ATOLL_ASSIGN_OR_RETURN(const JoinedRun joined, member.connection->Join(parameters));
  member.member = joined.member;
  return absl::OkStatus();
}

absl::Status Crowd::Seed() {
  const std::vector<float> zeros(model_.elements, 0.0F);
  const SeedFragment seed{.id = FragmentId(0), .values = zeros};
  return members_[0].connection->SeedParameters(members_[0].member, model_.manifest, std::span(&seed, 1));
}

absl::Status Crowd::JoinAll() {
  std::this_thread::sleep_for(std::chrono::seconds(2));  // version 0 is being written
  ATOLL_ASSIGN_OR_RETURN(const uint64_t before, program_->AnonymousMemory());
  std::vector<absl::Status> outcomes(kBeatThreads);
  OnThreads(kBeatThreads, [&](uint32_t thread) {
    for (uint32_t i = 1 + thread; i < settings_.workers && outcomes[thread].ok(); i += kBeatThreads) {
      outcomes[thread] = Join(i);
      if (outcomes[thread].ok()) {
        outcomes[thread] = members_[i].connection->Heartbeat(members_[i].member, {}).status();
      }
    }
  });
  for (const absl::Status& outcome : outcomes) ATOLL_RETURN_IF_ERROR(outcome);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ATOLL_ASSIGN_OR_RETURN(const uint64_t after, program_->AnonymousMemory());
  start_mib_ = static_cast<double>(before) / (1 << 20);
  idle_mib_ = static_cast<double>(after) / (1 << 20);
  idle_kib_ = (static_cast<double>(after) - static_cast<double>(before)) / 1024 / (settings_.workers - 1);
  return absl::OkStatus();
}

void Crowd::Note(const absl::Status& failure) {
  MutexLock lock(&mutex_);
  errors_.push_back(failure.ToString());
}

void Crowd::BeatOn(uint32_t thread) {
  std::vector<double> took;
  for (MonoTime turn = clock_.Now(); turn < end_; turn += kBeatEvery) {
    std::this_thread::sleep_until(turn);
    for (uint32_t i = thread; i < settings_.workers && clock_.Now() < end_; i += kBeatThreads) {
      // Spread over the interval, as workers that know nothing of each other are.
      std::this_thread::sleep_until(turn + kBeatEvery * i / settings_.workers);
      const MonoTime begin = clock_.Now();
      const auto reply = members_[i].connection->Heartbeat(members_[i].member, {});
      took.push_back(1000 * ToSeconds(clock_.Now() - begin));
      if (!reply.ok()) Note(reply.status());
    }
  }
  MutexLock lock(&mutex_);
  beats_ms_.insert(beats_ms_.end(), took.begin(), took.end());
}

void Crowd::ExchangeOn(uint32_t thread) {
  std::vector<std::byte> parameters(payload_.size());
  while (clock_.Now() < end_) {
    for (uint32_t i = thread; i < settings_.workers && clock_.Now() < end_; i += settings_.pushing) {
      Exchange(members_[i], parameters);
    }
  }
}

void Crowd::Exchange(Member& member, std::vector<std::byte>& parameters) {
  PullRequest request{.call = {.fragment = FragmentId(0), .after = member.base, .wait = Seconds(1)}};
  request.elements = model_.elements;
  request.codec = CodecKind::kBf16;
  const auto pulled = member.connection->Pull(member.member, request, parameters);
  // A version that was outdated while it was on its way is pulled again.
  if (absl::IsAborted(pulled.status())) return;
  if (!pulled.ok()) return Note(pulled.status());
  if (pulled->outcome != PullOutcome::kParameters) return;
  member.base = pulled->version;
  PushHeader header{.key = {.fragment = FragmentId(0), .base = pulled->version, .sequence = 0}};
  header.codec = CodecKind::kBf16;
  header.payload_bytes = payload_.size();
  header.payload_crc32c = payload_crc32c_;
  header.tokens = header.steps = 1;
  const auto receipt = member.connection->Push(member.member, header, payload_, 0);
  if (receipt.ok()) {
    ++push_journal_;
    uint64_t newest = newest_;
    while (newest < receipt->head.value() && !newest_.compare_exchange_weak(newest, receipt->head.value())) {
    }
  } else if (absl::IsResourceExhausted(receipt.status()) || AsksAgainLater(receipt.status())) {
    ++postponed_;
  } else if (!absl::IsFailedPrecondition(receipt.status())) {  // the round closed without it
    Note(receipt.status());
  }
}

absl::StatusOr<LoadResult> Crowd::Measure() {
  end_ = clock_.Now() + Seconds(settings_.seconds);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kBeatThreads; ++i) threads.emplace_back([this, i] { BeatOn(i); });
  for (uint32_t i = 0; i < settings_.pushing; ++i) threads.emplace_back([this, i] { ExchangeOn(i); });
  uint64_t peak = 0;
  while (clock_.Now() < end_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    peak = std::max(peak, program_->AnonymousMemory().value_or(0));
  }
  for (std::thread& thread : threads) thread.join();
  LoadResult result;
  result.peak_mib = static_cast<double>(peak) / (1 << 20);
  const std::string& metrics = program_->metrics_address();
  const std::string scrape =
      HttpGet(static_cast<uint16_t>(std::stoul(metrics.substr(metrics.rfind(':') + 1))), "/metrics");
  result.server_p99_ms = P99Of(scrape, "atoll_heartbeat_duration_seconds");
  Summarise(result);
  return result;
}

void Crowd::Summarise(LoadResult& result) {
  MutexLock lock(&mutex_);
  result.cores = std::thread::hardware_concurrency();
  result.errors = errors_.size();
  result.first_errors.assign(errors_.begin(), errors_.begin() + std::min(errors_.size(), kErrorsKept));
  result.idle_kib = idle_kib_;
  result.heartbeats = beats_ms_.size();
  result.client_p50_ms = Quantile(beats_ms_, 0.5);
  result.client_p99_ms = Quantile(beats_ms_, 0.99);
  result.client_max_ms = Quantile(beats_ms_, 1);
  result.pushes = push_journal_;
  result.postponed = postponed_;
  result.versions = newest_;
  result.start_mib = start_mib_;
  result.idle_mib = idle_mib_;
}

}  // namespace atl
