#include "bench/exchange/island.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "bench/exchange/crew.h"
#include "client/rpc/channel.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "core/codec.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Island>> Island::Start(const ExchangeSettings& settings, const Recipe& recipe,
                                                      uint32_t workers, StoreKind store, bool metered) {
  ATOLL_ASSIGN_OR_RETURN(SyntheticModel model, MakeSyntheticModel(settings.mib, workers, recipe));
  std::unique_ptr<Island> island(new Island(recipe, std::move(model)));
  island->payload_ = EncodedAs(recipe.push, PseudoGradient(island->model_.elements, 1));
  island->payload_crc32c_ = Crc32c(island->payload_);
  ATOLL_ASSIGN_OR_RETURN(island->program_,
                         CoordinatorProgram::Start(
                             settings.program, store == StoreKind::kDisk ? settings.dir : settings.memory_dir,
                             island->model_.yaml));
  ATOLL_RETURN_IF_ERROR(island->JoinAll(workers, metered));
  return island;
}

Island::~Island() {
  members_.clear();
  meter_.reset();
}

absl::Status Island::JoinAll(uint32_t workers, bool metered) {
  members_.resize(workers);
  for (uint32_t i = 0; i < workers; ++i) {
    Member& member = members_[i];
    std::string address = program_->data_address();
    if (metered && i == 0) {
      ATOLL_ASSIGN_OR_RETURN(meter_, Meter::Start(address));
      address = meter_->address();
    }
    member.connection = std::make_unique<GrpcConnection>(GrpcConnectionOptions{.address = address},
                                                         MakeChannel({.address = address}), &clock_);
    JoinCall parameters{.worker = absl::StrCat("w", i), .secret = "0123456789abcdef"};
    parameters.manifest_hash = ManifestHash(model_.manifest);
    ATOLL_ASSIGN_OR_RETURN(const JoinedRun joined, member.connection->Join(parameters));
    member.member = joined.member;
    member.parameters.resize(CodecFor(recipe_.pull).EncodedSize(model_.elements));
    if (i > 0) continue;
    const std::vector<float> zeros(model_.elements, 0.0F);
    const SeedFragment seed{.id = FragmentId(0), .values = zeros};
    ATOLL_RETURN_IF_ERROR(
        member.connection->SeedParameters(member.member, model_.manifest, std::span(&seed, 1)));
  }
  return RunCrew(workers, {[this](uint32_t i) { return Pull(members_[i]); }}, false).status();
}

absl::Status Island::Pull(Member& member) {
  PullRequest request{.call = {.fragment = FragmentId(0), .after = member.base, .wait = Seconds(60)}};
  request.elements = model_.elements;
  request.codec = recipe_.pull;
  if (recipe_.delta) {
    request.call.have = member.base;
    request.delta_codec = *recipe_.delta;
  }
  ATOLL_ASSIGN_OR_RETURN(const PulledVersion pulled,
                         member.connection->Pull(member.member, request, member.parameters));
  if (pulled.outcome != PullOutcome::kParameters) {
    return absl::UnavailableError("no next version: " + pulled.waiting_for);
  }
  if (recipe_.delta && member.base && !pulled.delta_base) {
    return absl::InternalError("the whole version came in place of a difference");
  }
  member.base = pulled.version;
  return absl::OkStatus();
}

absl::Status Island::Push(Member& member) {
  const auto begin = std::chrono::steady_clock::now();
  PushHeader header{.key = {.fragment = FragmentId(0), .base = *member.base, .sequence = 0}};
  header.codec = recipe_.push;
  header.payload_bytes = payload_.size();
  header.payload_crc32c = payload_crc32c_;
  header.tokens = header.steps = 1;
  header.zstd = recipe_.zstd;
  const absl::Status pushed = member.connection->Push(member.member, header, payload_, 0).status();
  member.push_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return pushed;
}

absl::StatusOr<double> Island::Round() {
  ATOLL_ASSIGN_OR_RETURN(const double seconds, RunCrew(static_cast<uint32_t>(members_.size()),
                                                       {[this](uint32_t i) { return Push(members_[i]); },
                                                        [this](uint32_t i) { return Pull(members_[i]); }},
                                                       /*lockstep=*/false));
  push_s_ = 0;
  for (const Member& member : members_) push_s_ = std::max(push_s_, member.push_s);
  return seconds;
}

Island::Traffic Island::traffic() const {
  if (meter_ == nullptr) return {};
  return {.up = meter_->up(), .down = meter_->down()};
}

}  // namespace atl
