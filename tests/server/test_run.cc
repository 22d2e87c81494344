#include "tests/server/test_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>

#include "common/crc32c.h"
#include "common/status.h"

namespace atl {

CoordinatorOptions SmallRun() {
  CoordinatorOptions options;
  RunOptions& run = options.run;
  run.name = "small";
  run.workers = 2;
  run.rounds = 100;
  run.model.gpt().context = 8;
  run.model.gpt().vocabulary = 256;
  run.data.tokenizer = "bytes";
  run.data.partitions = 8;
  run.inner.steps = 2;
  run.inner.batch = 4;
  run.inner.learning_rate = 1e-3;
  run.merge.weights = MergeWeighting::kUniform;
  run.round.deadline = Seconds(100);
  run.round.lease = Seconds(15);
  run.round.start_workers = 2;
  run.shards = 2;
  options.fragments = 1;
  options.config_bytes = "config-1";
  options.tick = Seconds(0.001);
  options.storage_retry = Seconds(0.001);
  options.merge_threads = 2;
  return options;
}

Manifest SmallManifest() {
  Manifest manifest;
  manifest.tensors.push_back({.name = "a", .shape = {300}});
  manifest.tensors.push_back({.name = "b", .shape = {50, 10}});
  return manifest;
}

std::vector<float> Fill(const std::function<float(size_t)>& value) {
  std::vector<float> values(kSmallElements, 0.0F);
  for (size_t i = 0; i < 300; ++i) values[i] = value(i);
  for (size_t i = 512; i < 1012; ++i) values[i] = value(i);
  return values;
}

std::span<const std::byte> AsBytes(const std::vector<float>& values) {
  return std::as_bytes(std::span<const float>(values));
}

std::vector<float> AsFloats(const Snapshot& snapshot) {
  std::vector<float> values(snapshot.elements);
  CodecFor(snapshot.codec).DecodeRange(snapshot.payload, snapshot.elements, 0, values);
  return values;
}

bool Eventually(const std::function<bool()>& condition) {
  const MonoTime deadline = SystemClock().Now() + Seconds(60);
  while (!condition()) {
    if (SystemClock().Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

EventCatcher::EventCatcher(Coordinator* coordinator, uint64_t after) : coordinator_(coordinator) {
  id_ = coordinator->Subscribe(after, [this](const EventView& event) {
    MutexLock lock(&mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
    return true;
  });
}

EventCatcher::~EventCatcher() { coordinator_->Unsubscribe(id_); }

std::optional<EventView> EventCatcher::WaitFor(EventKind kind, size_t nth) {
  const MonoTime deadline = SystemClock().Now() + Seconds(60);
  MutexLock lock(&mutex_);
  while (true) {
    size_t seen = 0;
    for (const EventView& event : events_) {
      if (event.kind == kind && seen++ == nth) return event;
    }
    if (!changed_.WaitUntil(&mutex_, deadline)) return std::nullopt;
  }
}

std::vector<EventView> EventCatcher::events() {
  MutexLock lock(&mutex_);
  return events_;
}

TestRun::TestRun(CoordinatorOptions options, TestParts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
  const absl::Status opened = Open();
  EXPECT_TRUE(opened.ok()) << opened;
}

TestRun::~TestRun() { Stop(); }

absl::Status TestRun::Open() {
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, OpenMemoryStore(disk_));
  CoordinatorDeps deps;
  deps.store = std::make_unique<FaultyStore>(std::move(store), faults_);
  deps.clock = &clock_;
  deps.config_codec = parts_.config_codec;
  deps.observer = parts_.observer;
  if (parts_.make_launcher) deps.launcher = parts_.make_launcher();
  ATOLL_ASSIGN_OR_RETURN(coordinator_, CreateCoordinator(options_, std::move(deps)));
  return absl::OkStatus();
}

absl::Status TestRun::Restart() {
  Stop();
  return Open();
}

absl::StatusOr<JoinReply> TestRun::TryJoin(const WorkerName& name, const std::string& secret_seed,
                                           WorkerRole role) {
  JoinCall call;
  call.worker = name;
  call.secret = "0123456789abcdef-" + (secret_seed.empty() ? name : secret_seed);
  call.role = role;
  call.manifest_hash = ManifestHash(SmallManifest());
  return coordinator_->Join(call);
}

MemberRef TestRun::Join(const WorkerName& name, WorkerRole role) {
  const auto joined = TryJoin(name, "", role);
  EXPECT_TRUE(joined.ok()) << joined.status();
  if (!joined.ok()) return {};
  return joined->member;
}

absl::StatusOr<SeedResult> TestRun::Seed(const MemberRef& caller, const std::vector<float>& values) {
  ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(SmallManifest(), options_.fragments));
  ATOLL_ASSIGN_OR_RETURN(const auto session, coordinator_->StartSeed(caller, SmallManifest()));
  for (const FragmentLayout& layout : layouts) {
    const std::span<const std::byte> part = AsBytes(values).first(layout.elements * sizeof(float));
    ATOLL_RETURN_IF_ERROR(session->Append(layout.id, 0, part.first(part.size() / 2)));
    ATOLL_RETURN_IF_ERROR(session->Append(layout.id, part.size() / 2, part.subspan(part.size() / 2)));
  }
  return session->Finish();
}

std::vector<MemberRef> TestRun::Begin(const std::vector<WorkerName>& names,
                                      const std::vector<float>& values) {
  std::vector<MemberRef> callers;
  for (const WorkerName& name : names) callers.push_back(Join(name));
  const auto seeded = Seed(callers.front(), values);
  EXPECT_TRUE(seeded.ok()) << seeded.status();
  return callers;
}

PushHeader TestRun::MakePush(uint64_t base, std::span<const std::byte> payload,
                             const PushVariation& variation) {
  PushHeader header;
  header.key = {.fragment = variation.fragment, .base = Version(base), .sequence = variation.sequence};
  header.codec = variation.codec;
  header.payload_bytes = variation.payload_bytes.value_or(payload.size());
  header.payload_crc32c = variation.crc.value_or(Crc32c(payload));
  header.tokens = variation.tokens;
  header.steps = variation.steps;
  header.partition = variation.partition;
  header.samples_consumed = variation.samples;
  header.mean_loss = variation.loss;
  return header;
}

absl::StatusOr<PushResult> TestRun::Push(const MemberRef& caller, uint64_t base,
                                         const std::vector<float>& values, const PushVariation& variation) {
  const Codec& codec = CodecFor(variation.codec);
  std::vector<std::byte> payload(codec.EncodedSize(values.size()));
  codec.Encode(values, payload);
  ATOLL_ASSIGN_OR_RETURN(const auto session,
                         coordinator_->StartPush(caller, MakePush(base, payload, variation)));
  if (!session->already_accepted()) ATOLL_RETURN_IF_ERROR(session->Append(0, payload));
  return session->Finish();
}

absl::StatusOr<PullResult> TestRun::Pull(const MemberRef& caller, std::optional<uint64_t> after,
                                         FragmentId fragment, Duration wait) {
  PullCall call;
  call.fragment = fragment;
  if (after) call.after = Version(*after);
  call.wait = wait;
  auto answer = std::make_shared<std::promise<absl::StatusOr<PullResult>>>();
  auto result = answer->get_future();
  coordinator_->Pull(caller, call,
                     [answer](absl::StatusOr<PullResult> pulled) { answer->set_value(std::move(pulled)); });
  if (result.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    return absl::DeadlineExceededError("no answer to a pull within a minute");
  }
  return result.get();
}

std::vector<float> TestRun::Published(const MemberRef& caller, std::optional<uint64_t> after) {
  const auto pulled = Pull(caller, after);
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  if (!pulled.ok() || pulled->snapshot == nullptr) return {};
  return AsFloats(*pulled->snapshot);
}

void TestRun::WaitForStored(uint64_t version) {
  const MonoTime deadline = SystemClock().Now() + Seconds(60);
  while (coordinator_->GetStatus(0).fragments[0].stored < Version(version)) {
    ASSERT_LT(SystemClock().Now(), deadline) << "version " << version << " is not stored within a minute";
    std::this_thread::yield();
  }
}

absl::StatusOr<HeartbeatReply> TestRun::Heartbeat(const MemberRef& caller) {
  return coordinator_->Heartbeat(caller, HeartbeatCall());
}

}  // namespace atl
