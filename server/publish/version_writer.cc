#include "server/publish/version_writer.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace atl {

namespace {

// What readers may be ahead at most. Where pulls take longer the network is what they wait for, and writing
// beside them costs them nothing.
constexpr Duration kHeadStart = Seconds(1);
constexpr Duration kLook = Seconds(0.004);

}  // namespace

void VersionWriter::Store(const FragmentState* state, const SnapshotPtr& published,
                          std::function<void()> done) {
  const auto begin = SteadyNow() + kHeadStart;
  (void)queue_.Post([this, state, watch = SnapshotWatch(published), begin, done = std::move(done)] {
    LetReadersGoFirst(state->layout.id, watch, begin);
    Run(*state, done);
  });
}

void VersionWriter::LetReadersGoFirst(FragmentId fragment, const SnapshotWatch& published, MonoTime until) {
  // PublishedVersions holds it; other holders send it. No reader can be missed for long: pulls that waited
  // for the version got it when it was published.
  while (published.use_count() > 1 && SteadyNow() < until) {
    const bool next_round_comes =
        context_.budget->used() > 0 ||
        context_.state->contributions().Arrivals(fragment, context_.clock->Now()).arrived > 0;
    if (next_round_comes || !sleeper_.SleepFor(kLook)) return;
  }
}

void VersionWriter::Run(const FragmentState& state, const std::function<void()>& done) {
  const FragmentId fragment = state.layout.id;
  const std::string where = absl::StrFormat("tensors of fragment %d", fragment.value());
  while (true) {
    const MonoTime started = context_.clock->Now();
    const absl::Status stored = context_.store->StoreVersion(
        state.layout, state.version, state.view(), context_.state->settings().config()->run.keep_versions);
    Effects effects;
    if (stored.ok()) {
      context_.observer->OnStoreSeconds(ToSeconds(context_.clock->Now() - started));
      context_.state->faults().SetStorageError(where, "", context_.clock->Now(), effects);
      context_.state->rounds().Stored(fragment, state.version);
      (void)context_.effect_executor->Execute(effects);
      done();
      return;
    }
    context_.state->faults().SetStorageError(
        where,
        absl::StrFormat(
            "version %d of fragment %d is committed, but its tensors cannot be written: %s; trying again "
            "every %.1f s, and the next round waits for it",
            state.version.value(), fragment.value(), std::string(stored.message()),
            ToSeconds(context_.options.storage_retry)),
        started, effects);
    (void)context_.effect_executor->Execute(effects);
    if (!sleeper_.SleepFor(context_.options.storage_retry)) return;
  }
}

void VersionWriter::Stop() {
  sleeper_.Interrupt();
  queue_.Stop();
}

}  // namespace atl
