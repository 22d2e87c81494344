#include "client/setup/worker_home.h"

#include <string>
#include <utility>

#include "client/setup/setup_error.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "core/confirmation.h"

namespace atl {
namespace {

// Long enough for a coordinator that is started beside its workers, by hand or by a script.
constexpr Duration kGiveUpAfter = Seconds(60);

absl::StatusOr<StateDirectory> Lock(const std::string& path) {
  auto state = StateDirectory::Open(path);
  if (!absl::IsFailedPrecondition(state.status())) return state;
  return absl::AlreadyExistsError(std::string(state.status().message()));
}

absl::StatusOr<WorkerIdentity> IdentityOf(const StateDirectory& state, const std::string& name) {
  auto identity = state.LoadOrCreate(name);
  if (identity.ok()) return identity;
  const bool other_name = absl::IsFailedPrecondition(identity.status());
  return WithExitCode(identity.status(), other_name ? ExitCode::kUsage : ExitCode::kStorage);
}

}  // namespace

absl::StatusOr<WorkerHome> OpenWorkerHome(const MemberFlags& flags, const Logger& log) {
  auto state = Lock(flags.state_dir);
  if (!state.ok()) return WithExitCode(state.status(), ExitCode::kStorage);
  ATOLL_ASSIGN_OR_RETURN(const WorkerIdentity identity, IdentityOf(*state, flags.name));
  const auto key = state->LoadOrCreateKey();
  if (!key.ok()) return WithExitCode(key.status(), ExitCode::kStorage);
  WorkerOptions options;
  options.join.worker = identity.name;
  options.join.secret = identity.secret;
  options.join.role = flags.role == "evaluator" ? WorkerRole::kEvaluator : WorkerRole::kTrainer;
  options.join.expected_run = flags.expect_run;
  options.join.public_key = key->public_key();
  options.key = *key;
  options.peers.any_difference = flags.stop_on_any_difference;
  if (!flags.peer_keys.empty()) {
    const auto pinned = ReadPeerKeys(flags.peer_keys);
    if (!pinned.ok()) return WithExitCode(pinned.status(), LocalExitCode(pinned.status()));
    options.peers.pinned = *pinned;
  }
  log.Info("signs the parameters it trains on", {{"public_key", ToHex(key->public_key())}});
  options.state_folder = JoinPath(state->path(), "progress");
  options.backoff_seed = RandomNonZero64();
  if (!flags.wait_forever) options.retry_policy.give_up_after = kGiveUpAfter;
  return WorkerHome{*std::move(state), std::move(options)};
}

}  // namespace atl
