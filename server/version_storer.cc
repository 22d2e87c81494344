#include "server/version_storer.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace atoll {

namespace {

// What readers may be ahead at most. Where pulls take longer the network is what they wait for, and writing
// beside them costs them nothing.
constexpr auto kHeadStart = std::chrono::seconds(1);
constexpr Duration kLook = Seconds(0.004);

}  // namespace

void VersionStorer::Store(const FragmentState* state, const SnapshotPtr& published,
                          std::function<void()> done) {
  const auto begin = std::chrono::steady_clock::now() + kHeadStart;
  (void)queue_.Post([this, state, watch = SnapshotWatch(published), begin, done = std::move(done)] {
    LetReadersGoFirst(state->layout.id, watch, begin);
    Run(*state, done);
  });
}

void VersionStorer::LetReadersGoFirst(FragmentId fragment, const SnapshotWatch& published,
                                      std::chrono::steady_clock::time_point until) {
  // The board holds it; whoever else does is sending it. No reader can be missed for long: who waited for the
  // version got it when it was published.
  while (published.use_count() > 1 && std::chrono::steady_clock::now() < until) {
    const bool next_round_comes = services_.budget->used() > 0 ||
                                  services_.book->Arrivals(fragment, services_.clock->Now()).arrived > 0;
    if (next_round_comes || !sleeper_.SleepFor(kLook)) return;
  }
}

void VersionStorer::Run(const FragmentState& state, const std::function<void()>& done) {
  const FragmentId fragment = state.layout.id;
  const std::string where = absl::StrFormat("tensors of fragment %d", fragment.value());
  while (true) {
    const MonoTime started = services_.clock->Now();
    const absl::Status stored = services_.store->StoreVersion(state.layout, state.version, state.view(),
                                                              services_.book->config()->run.keep_versions);
    Effects effects;
    if (stored.ok()) {
      services_.observer->OnStoreSeconds(ToSeconds(services_.clock->Now() - started));
      services_.book->SetStorageError(where, "", services_.clock->Now(), effects);
      services_.book->Stored(fragment, state.version);
      (void)services_.outbox->Send(effects);
      done();
      return;
    }
    services_.book->SetStorageError(
        where,
        absl::StrFormat(
            "version %d of fragment %d is committed, but its tensors cannot be written: %s; trying again "
            "every %.1f s, and the next round waits for it",
            state.version.value(), fragment.value(), std::string(stored.message()),
            ToSeconds(services_.options.storage_retry)),
        started, effects);
    (void)services_.outbox->Send(effects);
    if (!sleeper_.SleepFor(services_.options.storage_retry)) return;
  }
}

void VersionStorer::Stop() {
  sleeper_.Interrupt();
  queue_.Stop();
}

}  // namespace atoll
