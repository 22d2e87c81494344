#include "server/version_storer.h"

#include <string>

#include "absl/strings/str_format.h"

namespace atoll {

void VersionStorer::Store(const FragmentState* state, std::function<void()> done) {
  (void)queue_.Post([this, state, done = std::move(done)] { Run(*state, done); });
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
