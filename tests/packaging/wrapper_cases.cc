// What atoll/client.hpp promises beyond the example, against a real coordinator with `model: external`.
// Usage: wrapper_cases COORDINATOR FOLDER. Prints one line for each case; exit code 1 when one fails.
#include <atoll/client.hpp>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

static_assert(!std::is_copy_constructible_v<atl::Client> &&
              std::is_nothrow_move_constructible_v<atl::Client>);
static_assert(!std::is_copy_constructible_v<atl::Snapshot> &&
              std::is_nothrow_move_constructible_v<atl::Snapshot>);

namespace {

// Pulls two weights towards 3 and -1; counts its steps.
class Pull : public atl::Trainer {
 public:
  void UsePartition(std::uint32_t, std::uint32_t) override { samples = 0; }
  void Seek(std::uint64_t at) override { samples = at; }
  atl::StepResult Step(double) override {
    if (++steps == throw_at) throw std::logic_error("step three is broken");
    const float wanted[] = {3, -1};
    atl::StepResult result;
    result.loss = 0;
    for (int i = 0; i < 2; ++i) {
      const float error = values[i] - wanted[i];
      values[i] -= 0.2F * error;
      result.loss += static_cast<double>(error) * static_cast<double>(error);
    }
    if (steps == decline_at) result.outcome = ATL_DECLINED;
    result.samples = ++samples;
    return result;
  }
  atl::State Save() override { return {std::vector<char>(sizeof(samples)), "none/2", samples}; }
  void Load(const char* bytes, std::size_t) override { std::memcpy(&samples, bytes, sizeof(samples)); }
  bool Leaving() override { return steps >= leave_at; }

  std::vector<atl::Parameter> Tensors() { return {{"weights", {2}, values}}; }

  float values[2] = {0, 0};
  std::uint64_t samples = 0;
  int steps = 0, throw_at = -1, decline_at = -1, leave_at = 1 << 30;
};

struct Place {
  std::string coordinator, folder;
  atl::Options As(const std::string& name) const {
    return {{"coordinator", coordinator},
            {"name", name},
            {"state-dir", folder + "/" + name},
            {"log-file", folder + "/" + name + ".log"}};
  }
};

void Expect(bool fine, const std::string& what) {
  if (!fine) throw std::runtime_error("expected " + what);
}

void ExceptionsComeBack(const Place& place) {
  Pull trainer;
  trainer.throw_at = 3;
  atl::Client client(place.As("thrower"), trainer.Tensors());
  try {
    client.Run(trainer);
  } catch (const std::logic_error& error) {
    return Expect(std::string(error.what()) == "step three is broken" && trainer.steps == 3,
                  "the exception of step three");
  }
  Expect(false, "an exception");
}

void LeavingDrains(const Place& place) {
  Pull trainer;
  trainer.leave_at = 5;
  atl::Client first(place.As("drainer"), trainer.Tensors());
  atl::Client client = std::move(first);  // a moved client goes on
  const atl::End end = client.Run(trainer);
  Expect(end.reason == ATL_END_DRAINED && end.exit_code == 0 && !end.failed(), "a drain, not: " + end.text);
}

void NoMoreDataDrains(const Place& place) {
  Pull trainer;
  trainer.decline_at = 4;
  atl::Client client(place.As("decliner"), trainer.Tensors());
  const atl::End end = client.Run(trainer);
  Expect(end.reason == ATL_END_DRAINED && trainer.steps == 4, "a drain after four steps, not: " + end.text);
}

void AnotherThreadStops(const Place& place) {
  Pull trainer;
  atl::Client client(place.As("stopper"), trainer.Tensors());
  std::string status;
  std::thread other([&] {
    do {
      status = client.Status();  // {} until the engine has one
      std::this_thread::yield();
    } while (status.find("\"step\"") == std::string::npos);
    client.Stop();
  });
  const atl::End end = client.Run(trainer);
  other.join();
  Expect(end.reason == ATL_END_STOPPED, "a stop, not: " + end.text);
  Expect(status.find("\"phase\"") != std::string::npos, "a phase in the status, not: " + status);
}

void ParametersNeedMemory(const Place& place) {
  Pull trainer;
  atl::Client client(place.As("bare"), {{"weights", {2}}});
  try {
    client.Run(trainer);
  } catch (const atl::Error& error) {
    return Expect(error.code() == ATL_INVALID_ARGUMENT &&
                      std::string(error.what()).find("has no values") != std::string::npos,
                  error.what());
  }
  Expect(false, "an error");
}

void BadOptionsAreNamed(const Place& place) {
  Pull trainer;
  try {
    atl::Client client(
        {{"coordinator", place.coordinator}, {"state-dir", place.folder + "/x"}, {"nonsense", "1"}},
        trainer.Tensors());
  } catch (const atl::Error& error) {
    return Expect(error.code() == ATL_INVALID_ARGUMENT &&
                      std::string(error.what()).find("nonsense") != std::string::npos,
                  error.what());
  }
  Expect(false, "an error");
}

void SnapshotsHoldTheTensors(const Place& place) {
  const atl::Snapshot snapshot({{"coordinator", place.coordinator}});
  Expect(snapshot.TensorCount() == 1 && snapshot.Version() > 0, "one tensor of a later version");
  const atl::Snapshot::View view = snapshot.Tensor(0);
  Expect(view.name == "weights" && view.shape == std::vector<std::int64_t>{2} && view.elements == 2,
         "the weights");
  Expect(view.values[0] > 1 && view.values[0] < 5,
         "a first weight on its way to 3, not " + std::to_string(view.values[0]));
  try {
    snapshot.Tensor(1);
  } catch (const atl::Error&) {
    return;
  }
  Expect(false, "an error for a tensor that does not exist");
}

void APullCanBeGivenUp(const Place&) {
  try {
    const atl::Snapshot snapshot({{"coordinator", "127.0.0.1:1"}}, [] { return true; });
  } catch (const atl::Error& error) {
    return Expect(error.code() == ATL_CANCELLED, error.what());
  }
  Expect(false, "an error");
}

}  // namespace

int main(int, char** argv) {
  const Place place{argv[1], argv[2]};
  int failed = 0;
  const std::pair<const char*, void (*)(const Place&)> cases[] = {
      {"bad options are named", BadOptionsAreNamed},
      {"leaving drains", LeavingDrains},
      {"snapshots hold the tensors", SnapshotsHoldTheTensors},
      {"a pull can be given up", APullCanBeGivenUp},
      {"no more data drains", NoMoreDataDrains},
      {"exceptions come back", ExceptionsComeBack},
      {"another thread stops", AnotherThreadStops},
      {"parameters need memory", ParametersNeedMemory},
  };
  for (const auto& [name, run] : cases) {
    try {
      run(place);
      std::printf("%s: ok\n", name);
    } catch (const std::exception& error) {
      std::printf("%s: FAILED: %s\n", name, error.what());
      ++failed;
    }
    std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}
