#include "tests/byzantine/experiment.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/random.h"
#include "common/status.h"
#include "core/payload_gaps.h"
#include "core/privacy.h"
#include "server/create_coordinator.h"
#include "server/rejection.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/byzantine/text_model.h"
#include "tests/common/fake_clock.h"

namespace atl::byzantine {
namespace {

constexpr uint32_t kSteps = 12;  // H
constexpr uint32_t kBatch = 24;
constexpr double kRate = 6e-3;
constexpr Duration kDeadline = Seconds(100);  // never reached: the clock stands still

struct Text {
  std::vector<uint8_t> train;
  std::vector<uint8_t> held_out;
};

absl::StatusOr<Text> ReadText() {
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(ATOLL_BYZANTINE_TEXT));
  const std::vector<uint8_t> classes = Classes(bytes);
  const size_t cut = classes.size() * 7 / 8;
  return Text{{classes.begin(), classes.begin() + static_cast<ptrdiff_t>(cut)},
              {classes.begin() + static_cast<ptrdiff_t>(cut), classes.end()}};
}

std::vector<uint32_t> AllPositions(size_t size) {
  std::vector<uint32_t> positions;
  for (uint32_t p = TextModel::kContext; p < size; ++p) positions.push_back(p);
  return positions;
}

CoordinatorOptions OptionsOf(const Experiment& experiment) {
  CoordinatorOptions options;
  RunOptions& run = options.run;
  run.name = "byzantine";
  run.workers = kWorkers;
  run.rounds = 4 * experiment.rounds;  // a run that has lost workers goes on as long as the others
  run.model.gpt().context = TextModel::kContext;
  run.model.gpt().vocabulary = kClasses;
  run.data.tokenizer = "characters";
  run.data.mode = DataMode::kLocal;
  run.inner.steps = kSteps;
  run.inner.batch = kBatch;
  run.inner.learning_rate = kRate;
  run.merge = experiment.merge;
  run.offenders = experiment.offenders;
  run.privacy = experiment.privacy;
  run.round.deadline = kDeadline;
  run.round.grace = Seconds(0);
  run.round.grace_mode = GraceMode::kFixed;
  run.round.lease = Seconds(1e6);
  run.round.start_workers = kWorkers;
  run.shards = 1;
  options.config_bytes = "byzantine";
  options.tick = Seconds(0.001);
  options.merge_threads = 1;
  return options;
}

/// For experiments that are the same every time. Never for privacy.
class PlainNoise final : public GaussianSource {
 public:
  void AddTo(std::span<float> values, double deviation) override {
    for (float& value : values) {
      const double length = std::sqrt(-2 * std::log(1 - random_.Uniform()));
      value += static_cast<float>(deviation * length * std::cos(2 * std::numbers::pi * random_.Uniform()));
    }
  }

 private:
  SplitMixGenerator random_{4711};
};

struct Member {
  MemberRef caller;
  Adam adam;
  SplitMixGenerator random;
  std::optional<Attacker> attacker;
  bool gone = false;
};

class Trial {
 public:
  Trial(const Experiment& experiment, Text text) : experiment_(experiment), text_(std::move(text)) {}

  absl::StatusOr<Outcome> Go(const std::string& folder) {
    ATOLL_ASSIGN_OR_RETURN(auto store, OpenRocksDbStore({.data_dir = folder}));
    CoordinatorDeps deps;
    deps.store = std::move(store);
    deps.clock = &clock_;
    ATOLL_ASSIGN_OR_RETURN(coordinator_, CreateCoordinator(OptionsOf(experiment_), std::move(deps)));
    ATOLL_ASSIGN_OR_RETURN(const auto layouts, PlanFragments(TextModel::TheManifest(), 1));
    layout_ = layouts.front();
    model_.emplace(layout_);
    const uint64_t events = coordinator_->Subscribe(0, [this](const EventView& event) {
      Hear(event);
      return true;
    });
    auto outcome = Finish(Train());
    coordinator_->Unsubscribe(events);
    return outcome;
  }

 private:
  void Hear(const EventView& event) {
    if (event.kind == EventKind::kWorkerBanned) {
      outcome_.banned.emplace(event.worker, versions_);
      if (outcome_.ban_event.empty()) outcome_.ban_event = event.message;
    }
    if (event.kind == EventKind::kRoundClosed) closed_.push_back(event.message);
    versions_ = closed_.size();
    if (event.kind == EventKind::kContributionRefused) ++outcome_.rejected;
  }

  absl::Status Begin() {
    const Manifest manifest = TextModel::TheManifest();
    for (uint32_t i = 0; i < kWorkers; ++i) {
      JoinCall call;
      call.worker = NameOf(i);
      call.secret = "0123456789abcdef-" + call.worker;
      call.role = WorkerRole::kTrainer;
      call.manifest_hash = ManifestHash(manifest);
      ATOLL_ASSIGN_OR_RETURN(const JoinReply joined, coordinator_->Join(call));
      members_.push_back({.caller = joined.member,
                          .adam = Adam(layout_.elements),
                          .random = SplitMixGenerator(100 + i),
                          .attacker = std::nullopt});
      if (i >= kWorkers - experiment_.f) members_.back().attacker.emplace(experiment_.attack, i);
    }
    const std::vector<float> initial = model_->Initial(7);
    ATOLL_ASSIGN_OR_RETURN(const auto session, coordinator_->StartSeed(members_[0].caller, manifest));
    ATOLL_RETURN_IF_ERROR(session->Append(FragmentId(0), 0, std::as_bytes(std::span(initial))));
    return session->Finish().status();
  }

  absl::Status Train() {
    ATOLL_RETURN_IF_ERROR(Begin());
    ATOLL_RETURN_IF_ERROR(Pull(members_[0].caller, std::nullopt));
    for (uint64_t base = 0; base < experiment_.rounds; ++base) {
      accepted_.push_back(0);
      for (Member& member : members_) ATOLL_RETURN_IF_ERROR(TakePart(member, base));
      // The round closes by itself: everybody has arrived, was refused or is banned. Time never passes here,
      // so a round that waits for anybody else is never published, and one that does not wait shows in
      // CheckRounds.
      ATOLL_RETURN_IF_ERROR(Pull(members_[0].caller, base));
    }
    return absl::OkStatus();
  }

  absl::Status TakePart(Member& member, uint64_t base) {
    if (member.gone) return absl::OkStatus();
    std::vector<float> local = base_;
    std::vector<float> gradient(local.size());
    std::vector<uint32_t> batch(kBatch);
    for (uint32_t step = 0; step < kSteps; ++step) {
      for (uint32_t& position : batch) {
        position = TextModel::kContext +
                   static_cast<uint32_t>(member.random.Below(text_.train.size() - TextModel::kContext));
      }
      std::ranges::fill(gradient, 0.0F);
      model_->Loss(local, text_.train, batch, gradient);
      member.adam.Step(local, gradient, kRate);
    }
    for (size_t i = 0; i < local.size(); ++i) local[i] = base_[i] - local[i];
    Privatise(local);
    Claims claims{.tokens = uint64_t{kSteps} * kBatch * TextModel::kContext, .steps = kSteps};
    if (member.attacker) {
      member.attacker->Corrupt(local, claims);
      ClearGaps(layout_, local);  // or the coordinator would reject it for its form
    }
    const absl::Status pushed = Push(member.caller, base, local, claims);
    if (pushed.ok()) ++accepted_.back();
    if (pushed.ok() || !member.attacker) return pushed;  // an honest worker must never be refused
    switch (ReasonOf(pushed)) {
      case RejectionReason::kNotFinite:
      case RejectionReason::kAlreadyPushed:  // replayed
        return absl::OkStatus();             // its round goes on without it
      case RejectionReason::kBanned:
      case RejectionReason::kNotAMember:  // a ban removes it at once; CheckRounds holds that it was one
        member.gone = true;
        return absl::OkStatus();
      default:
        return pushed;
    }
  }

  /// Every round waited for each contribution that was accepted, and for nothing else.
  absl::Status CheckRounds() const {
    for (size_t i = 0; i < accepted_.size(); ++i) {
      const std::string expected = absl::StrFormat("all %d expected contributions arrived", accepted_[i]);
      if (i < closed_.size() && absl::StrContains(closed_[i], expected)) continue;
      return absl::InternalError(
          absl::StrFormat("version %d: %d contributions were accepted; the event says '%s'", i + 1,
                          accepted_[i], i < closed_.size() ? closed_[i] : "nothing"));
    }
    for (const Member& member : members_) {
      if (!member.gone || outcome_.banned.contains(member.caller.worker)) continue;
      return absl::InternalError(absl::StrFormat("'%s' is gone and was not banned", member.caller.worker));
    }
    return absl::OkStatus();
  }

  void Privatise(std::vector<float>& delta) {
    const PrivacyOptions& privacy = experiment_.privacy;
    if (!privacy.enabled()) return;
    atl::Privatise(privacy.clip_norm, privacy.noise_multiplier * privacy.clip_norm, delta, &noise_);
  }

  absl::Status Push(const MemberRef& caller, uint64_t base, std::span<const float> values,
                    const Claims& claims) {
    const std::span<const std::byte> payload = std::as_bytes(values);
    const PushHeader header{.key = {.fragment = FragmentId(0), .base = Version(base)},
                            .payload_bytes = payload.size(),
                            .payload_crc32c = Crc32c(payload),
                            .tokens = claims.tokens,
                            .steps = claims.steps};
    ATOLL_ASSIGN_OR_RETURN(const auto session, coordinator_->StartPush(caller, header));
    ATOLL_RETURN_IF_ERROR(session->Append(0, payload));
    return session->Finish().status();
  }

  absl::Status Pull(const MemberRef& caller, std::optional<uint64_t> after) {
    PullCall call;
    if (after) call.after = Version(*after);
    call.wait = Seconds(60);
    auto answer = std::make_shared<std::promise<absl::StatusOr<PullResult>>>();
    auto result = answer->get_future();
    coordinator_->Pull(caller, call,
                       [answer](absl::StatusOr<PullResult> pulled) { answer->set_value(std::move(pulled)); });
    if (result.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      return absl::DeadlineExceededError("no version within a minute");
    }
    ATOLL_ASSIGN_OR_RETURN(const PullResult pulled, result.get());
    if (pulled.snapshot == nullptr) return absl::InternalError("a pull without parameters");
    base_.resize(pulled.snapshot->elements);
    std::memcpy(base_.data(), pulled.snapshot->payload.data(), base_.size() * sizeof(float));
    return absl::OkStatus();
  }

  absl::StatusOr<Outcome> Finish(const absl::Status& trained) {
    for (const WorkerView& worker : coordinator_->ListWorkers(/*all=*/true)) {
      outcome_.offences[worker.name] = worker.offences.recent();
    }
    coordinator_->Shutdown();  // every event has come
    ATOLL_RETURN_IF_ERROR(trained);
    ATOLL_RETURN_IF_ERROR(CheckRounds());
    outcome_.loss = model_->Loss(base_, text_.held_out, AllPositions(text_.held_out.size()), {});
    return std::move(outcome_);
  }

  const Experiment experiment_;
  const Text text_;
  FakeClock clock_;
  FragmentLayout layout_;
  std::optional<TextModel> model_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<Member> members_;
  std::vector<float> base_;
  PlainNoise noise_;
  std::vector<uint32_t> accepted_;   // contributions, by round
  std::vector<std::string> closed_;  // messages of ROUND_CLOSED: the events' thread; read after it has ended
  uint64_t versions_ = 0;            // likewise
  Outcome outcome_;                  // likewise, but for the loss
};

}  // namespace

std::string NameOf(uint32_t i) { return absl::StrFormat("w%d", i); }

absl::StatusOr<Outcome> Run(const Experiment& experiment, const std::string& folder) {
  ATOLL_ASSIGN_OR_RETURN(Text text, ReadText());
  return Trial(experiment, std::move(text)).Go(folder);
}

}  // namespace atl::byzantine
