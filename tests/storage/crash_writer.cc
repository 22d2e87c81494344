// The program that storage_crash_test kills: works on a run until it dies, and says what it was promised.
//
//   storage_crash_writer DIR         opens DIR, then pushes, commits and stores for ever
//   storage_crash_writer DIR check   opens DIR, checks all that it holds and prints the head
//
// Every line "ACK <head> <what> <argument>" follows a call that returned OK. ACK's first number is the last
// acknowledged head (-1: not seeded), which is what a power-cut simulation compares with `check`.

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/storage/crash_check.h"
#include "tests/storage/store_model.h"

namespace atl {
namespace {

constexpr uint32_t kKeep = 2;

class CrashWriter {
 public:
  explicit CrashWriter(std::unique_ptr<RunStore> store) : store_(std::move(store)) {}

  absl::Status Prepare() {
    ATOLL_ASSIGN_OR_RETURN(const std::optional<Recovery> found, store_->Recover());
    if (found) events_ = found->last_event_sequence;
    if (!found) {
      ATOLL_RETURN_IF_ERROR(model_.CreateRun(*store_));
      Acknowledge("created", "");
    }
    if (found && !found->fragments.empty()) {
      head_ = static_cast<int64_t>(found->fragments[0].head.value());
      stored_ = found->fragments[0].stored;
      return absl::OkStatus();
    }
    ATOLL_RETURN_IF_ERROR(model_.Seed(*store_));
    head_ = 0;
    Acknowledge("seeded", "");
    return absl::OkStatus();
  }

  /// Two workers push at once while the version before is being stored; then the round is committed.
  absl::Status Round() {
    const Version base(static_cast<uint64_t>(head_.load()));
    absl::Status results[3];
    std::thread first([&] { results[0] = PushAs("w0", base); });
    std::thread second([&] { results[1] = PushAs("w1", base); });
    std::thread storing([&] { results[2] = StoreHead(base); });
    first.join();
    second.join();
    storing.join();
    for (const absl::Status& result : results) ATOLL_RETURN_IF_ERROR(result);
    ATOLL_RETURN_IF_ERROR(model_.Commit(*store_, Next(base), "w0"));
    head_ = head_ + 1;
    Acknowledge("committed", absl::StrCat(head_.load()));
    ATOLL_RETURN_IF_ERROR(store_->AppendEvent({.sequence = ++events_, .bytes = "round"}));
    Acknowledge("event", absl::StrCat(events_));
    WorkerEntry worker;
    worker.name = "w0";
    worker.incarnation = Incarnation(static_cast<uint64_t>(head_.load()));
    ATOLL_RETURN_IF_ERROR(store_->PutWorker(worker));
    Acknowledge("worker", absl::StrCat(head_.load()));
    return absl::OkStatus();
  }

 private:
  absl::Status PushAs(const std::string& worker, Version base) {
    const absl::Status pushed = model_.Push(*store_, model_.KeyOf(worker, base));
    if (absl::IsAlreadyExists(pushed)) return absl::OkStatus();  // before the crash
    ATOLL_RETURN_IF_ERROR(pushed);
    Acknowledge("accepted", absl::StrCat(worker, "@", base.value()));
    return absl::OkStatus();
  }

  absl::Status StoreHead(Version head) {
    if (head <= stored_) return absl::OkStatus();
    ATOLL_RETURN_IF_ERROR(model_.Store(*store_, head, kKeep));
    stored_ = head;
    Acknowledge("stored", absl::StrCat(head.value()));
    return absl::OkStatus();
  }

  void Acknowledge(const std::string& what, const std::string& argument) {
    const std::string line = absl::StrCat("ACK ", head_.load(), " ", what, " ", argument, "\n");
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::exit(1);
  }

  const StoreModel model_ = CrashModel();
  const std::unique_ptr<RunStore> store_;
  std::atomic<int64_t> head_ = -1;
  Version stored_;
  uint64_t events_ = 0;
};

absl::Status Run(const std::string& dir, bool check) {
  if (check) {
    ATOLL_ASSIGN_OR_RETURN(const CrashState state, ReadCrashState(dir));
    std::printf("%ld\n", static_cast<long>(state.head));
    return absl::OkStatus();
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<RunStore> store, OpenRocksDbStore({.data_dir = dir}));
  CrashWriter writer(std::move(store));
  ATOLL_RETURN_IF_ERROR(writer.Prepare());
  while (true) ATOLL_RETURN_IF_ERROR(writer.Round());
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const absl::Status status = atl::Run(argv[1], argc > 2 && std::string(argv[2]) == "check");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
