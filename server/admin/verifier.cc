#include "server/admin/verifier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "common/status.h"
#include "server/rounds/recover_fragments.h"

namespace atl {
namespace {

using Verdict = VerifyView::Verdict;

VersionHashes HashesOf(const RoundRecord& record) {
  return {.parameters = record.parameters, .state = record.state, .published = record.published};
}

/// Which of the three differ.
std::string Difference(const VersionHashes& found, const VersionHashes& committed) {
  std::string what;
  const auto note = [&what](bool same, const char* name) {
    if (same) return;
    if (!what.empty()) what += ", ";
    what += name;
  };
  note(found.parameters == committed.parameters, "parameters");
  note(found.state == committed.state, "optimizer state");
  note(found.published == committed.published, "published payload");
  return what;
}

bool Keeps(const StoredEntry& stored, Version version) {
  return std::ranges::find(stored.versions, version) != stored.versions.end();
}

absl::Status Differs(const std::string& what) { return absl::DataLossError(what); }

}  // namespace

Verifier::Verifier(RunStore* store, std::vector<FragmentLayout> layouts, const RunOptions& run,
                   Confirmations confirmations)
    : store_(store),
      layouts_(std::move(layouts)),
      confirmations_(std::move(confirmations)),
      engine_(1, run.pull_codec, run.pull_delta) {}

absl::StatusOr<std::vector<Verifier::Item>> Verifier::Plan(std::optional<Version> version) const {
  std::vector<Item> items;
  for (const FragmentLayout& layout : layouts_) {
    if (version) {
      if (*version > Version(0)) ATOLL_RETURN_IF_ERROR(store_->ReadRound(layout.id, *version).status());
      items.push_back({.fragment = layout.id, .version = *version});
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, store_->Stored(layout.id));
    for (const Version kept : stored.versions) items.push_back({.fragment = layout.id, .version = kept});
  }
  return items;
}

absl::Status Verifier::Verify(std::optional<Version> version, const AdminControl::VerifyReport& report) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Item> items, Plan(version));
  for (size_t i = 0; i < items.size(); ++i) {
    VerifyView view = Check(items[i]);
    view.done = static_cast<uint32_t>(i + 1);
    view.total = static_cast<uint32_t>(items.size());
    if (confirmations_) confirmations_(items[i].fragment, items[i].version, view);
    if (!report(view)) break;
  }
  return absl::OkStatus();
}

VerifyView Verifier::Check(const Item& item) {
  VerifyView view;
  view.fragment = item.fragment;
  view.version = item.version;
  const FragmentLayout& layout = layouts_[item.fragment.value()];
  if (item.version == Version(0)) {
    view.verdict = Verdict::kNotKept;
    view.message = "it was seeded: there is no round to recompute";
    return view;
  }
  const auto record = store_->ReadRound(item.fragment, item.version);
  absl::Status status = record.status();
  if (status.ok()) status = CompareStored(layout, *record, view);
  if (status.ok() && view.verdict != Verdict::kNotKept) status = Recompute(layout, *record, view);
  if (status.ok()) return view;
  // Rounds go on: what retention let go of meanwhile is no damage.
  const auto stored = store_->Stored(item.fragment);
  if (!absl::IsDataLoss(status) || (stored.ok() && !Keeps(*stored, item.version))) {
    view.verdict = Verdict::kNotKept;
  } else {
    view.verdict = Verdict::kDifferent;
  }
  view.message = std::string(status.message());
  return view;
}

absl::Status Verifier::CompareStored(const FragmentLayout& layout, const RoundRecord& record,
                                     VerifyView& view) {
  ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, store_->Stored(layout.id));
  if (!Keeps(stored, record.version)) {
    view.verdict = Verdict::kNotKept;
    view.message = "its tensors are not kept any more";
    return absl::OkStatus();
  }
  ATOLL_ASSIGN_OR_RETURN(const FragmentState state,
                         LoadFragment(*store_, engine_.delta_pulls(), record.epoch, layout, record.version));
  const std::string difference = Difference(engine_.Publish(state).hashes, HashesOf(record));
  if (difference.empty()) return absl::OkStatus();
  return Differs(absl::StrFormat("what is stored is not what was committed: %s differ", difference));
}

absl::StatusOr<Verifier::Source> Verifier::LoadSource(const FragmentLayout& layout,
                                                      const RoundRecord& record) {
  Source source;
  ATOLL_ASSIGN_OR_RETURN(source.mapped, MapInputs(*store_, record.contributions, record.weights));
  ATOLL_RETURN_IF_ERROR(CheckPayloads(source.mapped, record.contributions, engine_));
  ATOLL_ASSIGN_OR_RETURN(source.base, LoadFragment(*store_, engine_.delta_pulls(), record.epoch, layout,
                                                   Version(record.version.value() - 1)));
  source.base.outer_steps = record.outer_steps - 1;
  return source;
}

absl::Status Verifier::Recompute(const FragmentLayout& layout, const RoundRecord& record, VerifyView& view) {
  if (record.contributions.empty()) {
    view.message = record.close_reason + "; what is stored is what was committed";
    return absl::OkStatus();
  }
  const Version base(record.version.value() - 1);
  ATOLL_ASSIGN_OR_RETURN(const StoredEntry stored, store_->Stored(layout.id));
  auto source = Keeps(stored, base) ? LoadSource(layout, record) : absl::NotFoundError("");
  // Rounds go on: what retention let go of meanwhile is no damage.
  const auto now = store_->Stored(layout.id);
  if (absl::IsNotFound(source.status()) || (!source.ok() && now.ok() && !Keeps(*now, base))) {
    view.verdict = Verdict::kNotKept;
    view.message =
        "what is stored is what was committed; the version before it, or a contribution, is not kept";
    return absl::OkStatus();
  }
  ATOLL_RETURN_IF_ERROR(source.status());
  const auto computed = engine_.Step(source->mapped.inputs, record.merge, record.outer, source->base);
  if (!computed.ok()) return Differs(std::string(computed.status().message()));
  const std::string difference = Difference(computed->hashes, HashesOf(record));
  if (!difference.empty()) {
    return Differs(absl::StrFormat("recomputed from version %d and %s, %s differ", base.value(),
                                   Counted(record.contributions.size(), "contribution"), difference));
  }
  view.message = absl::StrFormat("recomputed from version %d and %s: every bit is the same", base.value(),
                                 Counted(record.contributions.size(), "contribution"));
  return absl::OkStatus();
}

}  // namespace atl
