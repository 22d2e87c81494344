#include "server/ingest/seed_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/model_check.h"
#include "core/outer_optimizer.h"
#include "core/payload_gaps.h"
#include "core/payload_stats.h"
#include "server/new_model.h"
#include "server/rejection.h"
#include "server/rounds/merge_engine.h"
#include "server/storage_rejection.h"

namespace atl {
namespace {

constexpr char kSeedWrite[] = "seed";  // a kind of write in RunFaults::SetStorageError

/// Of two workers that seed at the same time one is late: it may have the same model, or is told what
/// differs.
absl::Status NotAgain(const CoordinatorContext& context, const MemberRef& caller, const Manifest& manifest,
                      const absl::Status& seeded) {
  const RunModel model = context.state->seeding().model();
  return model.hash() == ManifestHash(manifest) ? seeded : RejectModel(caller.worker, model, manifest);
}

/// FailedPrecondition when this coordinator cannot hold or store the model: an upload would be for nothing.
absl::StatusOr<std::vector<FragmentLayout>> LayOutSeed(const CoordinatorContext& context,
                                                       const MemberRef& caller, const Manifest& manifest) {
  auto layouts = LayOutFirstModel(context.config()->run, context.options.fragments, manifest);
  if (layouts.ok()) return layouts;
  return absl::FailedPreconditionError(absl::StrFormat("worker '%s' cannot seed the run: %s", caller.worker,
                                                       std::string(layouts.status().message())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SeedSession>> SeedUpload::Start(const CoordinatorContext& context,
                                                               const MemberRef& caller,
                                                               const Manifest& manifest, Adopt adopt) {
  Effects effects;
  const absl::Status may = context.state->seeding().CheckSeeder(caller, context.clock->Now(), effects);
  (void)context.effect_executor->Execute(effects);
  if (absl::IsAlreadyExists(may)) return NotAgain(context, caller, manifest, may);
  ATOLL_RETURN_IF_ERROR(may);
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  const std::string joined_with = context.state->seeding().ManifestHashOf(caller.worker);
  if (ManifestHash(manifest) != joined_with) {
    return Reject(RejectionReason::kManifestMismatch,
                  absl::StrFormat("worker '%s' joined with manifest %s and seeds with %s", caller.worker,
                                  joined_with, ManifestHash(manifest)));
  }
  auto layouts = LayOutSeed(context, caller, manifest);
  if (!layouts.ok()) {
    // As an upload that broke off: after some of them it is another worker's turn.
    Effects passed_on;
    context.state->seeding().SeedUploadAborted(caller.worker, passed_on);
    (void)context.effect_executor->Execute(passed_on);
    return layouts.status();
  }
  return std::unique_ptr<SeedSession>(
      new SeedUpload(context, caller, manifest, *std::move(layouts), std::move(adopt)));
}

SeedUpload::SeedUpload(const CoordinatorContext& context, const MemberRef& caller, const Manifest& manifest,
                       std::vector<FragmentLayout> layouts, Adopt adopt)
    : context_(context),
      caller_(caller),
      manifest_(manifest),
      layouts_(std::move(layouts)),
      adopt_(std::move(adopt)) {}

absl::Status SeedUpload::Append(FragmentId fragment, uint64_t offset, std::span<const std::byte> data) {
  if (*context_.shutting_down)
    return Reject(RejectionReason::kShuttingDown, "the coordinator is shutting down");
  if (fragment_ < layouts_.size() && received_ == layouts_[fragment_].elements * sizeof(float)) {
    ++fragment_;
    received_ = 0;
  }
  if (fragment.value() != fragment_ || fragment_ >= layouts_.size() || offset != received_) {
    return Reject(
        RejectionReason::kBadChunk,
        absl::StrFormat("worker '%s' sent offset %d of fragment %d of the seed; offset %d of fragment %d of "
                        "%d is next",
                        caller_.worker, offset, fragment.value(), received_, fragment_, layouts_.size()));
  }
  const uint64_t total = layouts_[fragment_].elements * sizeof(float);
  if (data.size() > total - received_) {
    return Reject(RejectionReason::kWrongSize,
                  absl::StrFormat("worker '%s' sent more than the %d bytes of fragment %d", caller_.worker,
                                  total, fragment_));
  }
  if (buffers_.size() == fragment_) buffers_.emplace_back(layouts_[fragment_].elements);
  std::memcpy(std::as_writable_bytes(buffers_[fragment_].values()).data() + offset, data.data(), data.size());
  received_ += data.size();
  return absl::OkStatus();
}

absl::Status SeedUpload::CheckComplete() const {
  const bool last = fragment_ + 1 == layouts_.size();
  if (last && received_ == layouts_.back().elements * sizeof(float)) return absl::OkStatus();
  return Reject(RejectionReason::kWrongSize,
                absl::StrFormat("the seed of worker '%s' ended after %d bytes of fragment %d of %d",
                                caller_.worker, received_, fragment_, layouts_.size()));
}

absl::Status SeedUpload::CheckValues() const {
  for (size_t i = 0; i < layouts_.size(); ++i) {
    const std::span<const float> values = std::as_const(buffers_[i]).values();
    if (const auto bad = FirstNonFinite(values)) {
      return Reject(RejectionReason::kNotFinite,
                    absl::StrFormat("value %d of fragment %d of the seed of worker '%s' is not finite", *bad,
                                    i, caller_.worker));
    }
    const absl::Status gaps = CheckGaps(CodecFor(CodecKind::kFp32), std::as_bytes(values), layouts_[i]);
    if (!gaps.ok()) return Reject(RejectionReason::kWrongSize, std::string(gaps.message()));
  }
  return absl::OkStatus();
}

absl::Status SeedUpload::CheckGrant() const {
  Effects effects;
  const absl::Status may = context_.state->seeding().CheckSeeder(caller_, context_.clock->Now(), effects);
  (void)context_.effect_executor->Execute(effects);
  return absl::IsAlreadyExists(may) ? NotAgain(context_, caller_, manifest_, may) : may;
}

absl::Status SeedUpload::NotStored(const absl::Status& rejection) const {
  if (!OfStorage(ReasonOf(rejection))) return rejection;
  Effects effects;
  context_.state->faults().SetStorageError(kSeedWrite, std::string(rejection.message()),
                                           context_.clock->Now(), effects);
  (void)context_.effect_executor->Execute(effects);
  return rejection;
}

absl::Status SeedUpload::StoreVersionZero() {
  const size_t vectors = OuterStateVectors(context_.config()->run.outer.optimizer);
  std::vector<FragmentState> fragments;
  std::vector<FragmentTensorsView> tensors;
  for (size_t i = 0; i < layouts_.size(); ++i) {
    FragmentState& state = fragments.emplace_back();
    state.epoch = context_.identity.epoch;
    state.layout = layouts_[i];
    state.theta = std::make_shared<TensorBuffer>(std::move(buffers_[i]));
    for (size_t v = 0; v < vectors; ++v) state.state.push_back(TensorBuffer::Zeros(layouts_[i].elements));
    if (context_.config()->run.pull_delta) state.published = state.theta;
    tensors.push_back(state.view());
  }
  // The store takes one seed only: of two that come this far, one is refused.
  const absl::Status stored = context_.store->Seed(manifest_, layouts_, tensors);
  if (!stored.ok()) return NotStored(ToRejection(stored));
  Effects effects;
  context_.state->faults().SetStorageError(kSeedWrite, "", context_.clock->Now(), effects);
  context_.state->seeding().Seeded(manifest_, layouts_, caller_.worker, context_.clock->Now(), effects);
  adopt_(std::move(fragments));
  (void)context_.effect_executor->Execute(effects);
  return absl::OkStatus();
}

SeedUpload::~SeedUpload() {
  if (ended_ || *context_.shutting_down) return;
  Effects effects;
  context_.state->seeding().SeedUploadAborted(caller_.worker, effects);
  (void)context_.effect_executor->Execute(effects);
}

absl::StatusOr<SeedResult> SeedUpload::Finish() {
  // A seed that cannot be used counts like an upload that broke off: after some it is another worker's turn.
  ATOLL_RETURN_IF_ERROR(CheckComplete());
  ATOLL_RETURN_IF_ERROR(CheckValues());
  ended_ = true;
  ATOLL_RETURN_IF_ERROR(CheckGrant());
  ATOLL_RETURN_IF_ERROR(StoreVersionZero());
  SeedResult result;
  for (const FragmentLayout& layout : layouts_) {
    const SnapshotPtr head = context_.published_versions->Head(layout.id);
    result.fragments.push_back({.id = layout.id, .version = head->version, .elements = layout.elements});
    result.published.push_back(head->published);
  }
  return result;
}

}  // namespace atl
