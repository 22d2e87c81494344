#include "simulate/run_checker.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_format.h"
#include "common/random.h"
#include "core/codec.h"

namespace atl {
namespace {

/// One version that spends the budget, and one for what was acknowledged while it was being made.
constexpr uint32_t kVersionsAfterBudget = 1;

}  // namespace

void RunChecker::Fail(const std::string& what) {
  if (!status_.ok()) return;
  status_ =
      absl::InternalError(absl::StrFormat("%s (at %.3f s)", what, ToSeconds(SteadyNow().time_since_epoch())));
}

void RunChecker::Mix(uint64_t value) { fingerprint_ = SplitMix64(fingerprint_ ^ value); }

void RunChecker::OnSeeded(FragmentId fragment, std::vector<float> theta) {
  if (fragments_.contains(fragment)) return Fail("the run was seeded twice");
  fragments_[fragment].elements = theta.size();
  model_.Seed(fragment, std::move(theta));
  last_commit_ = SteadyNow();
}

void RunChecker::OnAccepted(const Contribution& contribution, std::string payload) {
  const ContributionKey& key = contribution.key;
  Fragment& fragment = fragments_[key.fragment];
  if (fragment.open.contains(key) || fragment.counted.contains({key.worker, key.base})) {
    return Fail(absl::StrFormat("the contribution of %s to version %d of fragment %d was accepted twice",
                                key.worker, key.base.value(), key.fragment.value()));
  }
  if (key.base > fragment.head) {
    return Fail(absl::StrFormat("a contribution of %s to version %d was accepted before that version existed",
                                key.worker, key.base.value()));
  }
  if (const absl::Status allowed = CheckAllowed(contribution, payload); !allowed.ok()) {
    return Fail(std::string(allowed.message()));
  }
  fragment.open.emplace(key, contribution);
  fragment.payloads.emplace(key, std::move(payload));
}

absl::Status RunChecker::CheckAllowed(const Contribution& contribution, const std::string& payload) const {
  const auto refuse = [&](const std::string& why) {
    return absl::FailedPreconditionError(
        absl::StrFormat("a contribution of %s to version %d was accepted: %s", contribution.key.worker,
                        contribution.key.base.value(), why));
  };
  if (contribution.steps > rules_.most_steps) {
    return refuse(absl::StrFormat("it claims %d steps, and %d were assigned at most", contribution.steps,
                                  rules_.most_steps));
  }
  if (contribution.tokens > contribution.steps * rules_.tokens_per_step) {
    return refuse(absl::StrFormat("it claims %d tokens in %d steps of %d", contribution.tokens,
                                  contribution.steps, rules_.tokens_per_step));
  }
  const uint64_t elements = fragments_.at(contribution.key.fragment).elements;
  const Codec& codec = CodecFor(contribution.codec);
  if (payload.size() != codec.EncodedSize(elements)) {
    return refuse(absl::StrFormat("it has %d bytes for %d values", payload.size(), elements));
  }
  std::vector<float> values(elements);
  codec.DecodeRange(std::as_bytes(std::span(payload)), elements, 0, values);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    return refuse("it has values that are not finite");
  }
  return absl::OkStatus();
}

bool RunChecker::budget_spent() const {
  return !fragments_.empty() && std::ranges::all_of(fragments_, [this](const auto& fragment) {
    return fragment.second.tokens >= rules_.total_tokens;
  });
}

absl::Status RunChecker::CheckBudget(const RoundRecord& record, Fragment& fragment) const {
  if (fragment.tokens >= rules_.total_tokens && ++fragment.after_budget > kVersionsAfterBudget) {
    return absl::FailedPreconditionError(
        absl::StrFormat("version %d of fragment %d is made after the budget of %d tokens was spent",
                        record.version.value(), record.fragment.value(), rules_.total_tokens));
  }
  for (const Contribution& contribution : record.contributions) fragment.tokens += contribution.tokens;
  if (record.committed_tokens == fragment.tokens) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "version %d of fragment %d names %d committed tokens; its contributions have %d",
      record.version.value(), record.fragment.value(), record.committed_tokens, fragment.tokens));
}

void RunChecker::OnCommitted(const RoundRecord& record) {
  Fragment& fragment = fragments_[record.fragment];
  const std::string version =
      absl::StrFormat("version %d of fragment %d", record.version.value(), record.fragment.value());
  if (record.version != Next(fragment.head)) {
    return Fail(absl::StrFormat("%s follows version %d", version, fragment.head.value()));
  }
  for (const Contribution& contribution : record.contributions) {
    const ContributionKey& key = contribution.key;
    const auto accepted = fragment.open.find(key);
    if (accepted == fragment.open.end() || accepted->second != contribution) {
      return Fail(
          absl::StrFormat("%s counts a contribution of %s to version %d that is not one that was accepted",
                          version, key.worker, key.base.value()));
    }
    fragment.open.erase(accepted);
    if (!fragment.counted.emplace(Key(key.worker, key.base), contribution.payload_crc32c).second) {
      return Fail(absl::StrFormat("%s counts %s's contribution to version %d again", version, key.worker,
                                  key.base.value()));
    }
    ++counted_;
  }
  // A round takes all that were accepted before it.
  for (const auto& [key, left] : fragment.open) {
    return Fail(absl::StrFormat("%s leaves out %s's contribution to version %d, which was accepted", version,
                                key.worker, key.base.value()));
  }
  if (const absl::Status budget = CheckBudget(record, fragment); !budget.ok())
    return Fail(std::string(budget.message()));
  if (const absl::Status computed = model_.Apply(record, fragment.payloads); !computed.ok()) {
    return Fail(std::string(computed.message()));
  }
  fragment.payloads.clear();
  fragment.head = record.version;
  last_commit_ = SteadyNow();
  ++committed_;
  Mix(record.parameters.low);
}

void RunChecker::OnAcknowledged(const WorkerName& worker, FragmentId fragment, Version base,
                                uint32_t crc32c) {
  ++acknowledged_;
  const Fragment& of = fragments_[fragment];
  const auto counted = of.counted.find({worker, base});
  bool held = counted != of.counted.end() && counted->second == crc32c;
  for (const auto& [key, open] : of.open) {
    held |= key.worker == worker && key.base == base && open.payload_crc32c == crc32c;
  }
  if (held) return;
  Fail(absl::StrFormat(
      "%s's contribution to version %d of fragment %d was acknowledged, and is not on the disk", worker,
      base.value(), fragment.value()));
}

void RunChecker::OnPulled(const WorkerName& worker, FragmentId fragment, Version version) {
  Version& last = pulled_[{worker, fragment}];
  if (version < last) {
    Fail(absl::StrFormat("%s got version %d of fragment %d after version %d", worker, version.value(),
                         fragment.value(), last.value()));
  }
  if (version > fragments_[fragment].head) {
    Fail(absl::StrFormat("%s got version %d of fragment %d before it was committed", worker, version.value(),
                         fragment.value()));
  }
  last = version;
}

}  // namespace atl
