/// C++17 wrapper of atoll/client.h: ownership by objects, errors as exceptions, and a loop that calls your
/// trainer.
///
/// Header only: it compiles into your program with your compiler's standard library, and the binary interface
/// stays that of atoll/client.h. Programs without exceptions use that header directly.
///
/// Two ways to use it:
///   1. Derive from atl::Trainer and call Client::Run(). Your parameters lie in the memory that you name in
///   atl::Parameter.
///   2. Call Client::Next() and Client::Answer() yourself, for example when the parameters lie on a device.
///
/// Threads, lifetimes and the rules of each event are those of atoll/client.h.
#ifndef ATOLL_CLIENT_HPP_
#define ATOLL_CLIENT_HPP_

#include <atoll/client.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The version is part of every symbol, so that libraries built with different releases of this header can
// share a process.
namespace atl {
inline namespace v1 {

/// A call failed. what() says what failed, on what, why, and what to do.
class Error : public std::runtime_error {
 public:
  Error(atl_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// ATL_INVALID_ARGUMENT and so on.
  atl_code code() const noexcept { return code_; }

 private:
  atl_code code_;
};

/// Options by name; atoll/client.h lists them. Example: {{"coordinator", "host:7600"}, {"state-dir",
/// "state"}}.
using Options = std::vector<std::pair<std::string, std::string>>;

/// One tensor. The order of the parameters is theirs in the run.
struct Parameter {
  std::string name;                 ///< unique, printable ASCII without spaces
  std::vector<std::int64_t> shape;  ///< empty: a scalar
  /// The tensor, row-major; it must outlive the client. Client::Run() copies from and to it. Null: you answer
  /// READ and WRITE.
  float* values = nullptr;
  bool embedding = false;  ///< a lookup table
  bool averaged = false;   ///< no parameter: a version has the mean of the workers' values
};

/// What one inner step did.
struct StepResult {
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean per token (or per sample); NaN: not known
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();  ///< before clipping; NaN: not known
  std::uint64_t tokens = 1;                                         ///< tokens (or samples) used
  std::uint64_t samples = 0;       ///< samples of the part that are consumed now, this step's included
  double data_seconds = 0;         ///< time spent on reading the batches
  atl_outcome outcome = ATL_DONE;  ///< ATL_NOT_FINITE: loss or gradient is not finite. ATL_DECLINED: no more
                                   ///< data; the worker drains
  std::string message;             ///< why, where the outcome is not ATL_DONE
};

/// Mean loss on held-out data.
struct EvaluationResult {
  double loss = 0;
  std::uint64_t tokens = 1;
};

/// Everything that the next steps depend on besides the parameters: optimizer state, place in the data,
/// random generators.
struct State {
  std::vector<char> bytes;
  std::string kind;  ///< names the optimizer and its size, such as "adam/17"
  std::uint64_t optimizer_steps = 0;
};

/// Your training loop, as Client::Run() calls it. An exception leaves the run without a push, and Run()
/// throws it again.
class Trainer {
 public:
  virtual ~Trainer() = default;

  /// The worker has joined: `run_json` has the run's name, configuration and tensors.
  virtual void Joined(const std::string& run_json) { static_cast<void>(run_json); }
  /// From now on reads part `partition` of `partitions` of the data, from its first sample.
  virtual void UsePartition(std::uint32_t partition, std::uint32_t partitions) = 0;
  /// Continues after `samples` samples of that part.
  virtual void Seek(std::uint64_t samples) = 0;
  /// Takes one inner optimizer step on the next samples.
  virtual StepResult Step(double learning_rate) = 0;
  virtual State Save() = 0;
  /// Takes up the bytes of an earlier Save(), the place in the data too.
  virtual void Load(const char* bytes, std::size_t size) = 0;
  /// Loss of the parameters as they are now, on at most `max_batches` held-out batches. Nothing: no held-out
  /// data here.
  virtual std::optional<EvaluationResult> Evaluate(std::uint32_t max_batches) {
    static_cast<void>(max_batches);
    return std::nullopt;
  }
  /// Asked about four times a second while waiting, and after each event. True: push what is done, then leave
  /// (a drain).
  virtual bool Leaving() { return false; }
};

/// Why the worker left.
struct End {
  std::uint32_t reason = 0;  ///< ATL_END_*
  atl_code code = ATL_OK;
  int exit_code = 0;  ///< what atoll-worker would exit with; 0: a clean end
  std::string text;   ///< a sentence for the user
  bool failed() const noexcept { return reason == ATL_END_FAILED; }
};

namespace internal {

inline void Check(atl_code code, const atl_error& error) {
  if (code != ATL_OK) throw Error(code, error.message);
}

inline std::vector<atl_option> Views(const Options& options) {
  std::vector<atl_option> views;
  for (const auto& [name, value] : options) views.push_back({name.c_str(), value.c_str()});
  return views;
}

struct Closer {
  void operator()(atl_client* client) const noexcept { atl_close(client); }
  void operator()(atl_snapshot* snapshot) const noexcept { atl_snapshot_close(snapshot); }
};

}  // namespace internal

/// One worker. Move-only; belongs to one thread at a time, except Status(), Drain() and Stop().
class Client {
 public:
  /// Starts the engine, which checks the options and the parameters. Throws Error.
  Client(const Options& options, const std::vector<Parameter>& parameters) {
    std::vector<atl_tensor> tensors;
    for (const Parameter& parameter : parameters) {
      atl_tensor tensor{};
      tensor.size = sizeof(tensor);
      tensor.rank = static_cast<std::uint32_t>(parameter.shape.size());
      tensor.name = parameter.name.c_str();
      tensor.shape = parameter.shape.data();
      if (parameter.embedding) tensor.flags |= static_cast<std::uint32_t>(ATL_TENSOR_EMBEDDING);
      if (parameter.averaged) tensor.flags |= static_cast<std::uint32_t>(ATL_TENSOR_AVERAGED);
      tensors.push_back(tensor);
      values_.push_back(parameter.values);
    }
    const std::vector<atl_option> views = internal::Views(options);
    atl_client* client = nullptr;
    atl_error error{};
    internal::Check(atl_open(views.data(), views.size(), tensors.data(), tensors.size(), &client, &error),
                    error);
    client_.reset(client);
  }

  /// Serves `trainer` until the worker has left. Throws Error, and whatever the trainer threw.
  End Run(Trainer& trainer) {
    std::exception_ptr failure;
    bool leaving = false;
    for (;;) {
      if (!leaving && trainer.Leaving()) {
        leaving = true;
        Drain();
      }
      const std::optional<atl_event> event = Next(std::chrono::milliseconds(250));
      if (!event) continue;
      if (event->kind == ATL_EVENT_END) {
        if (failure) std::rethrow_exception(failure);
        return End{event->end_reason, event->end_code, event->exit_code, event->text};
      }
      Serve(*event, trainer, failure);
    }
  }

  /// The next event, or nothing within `timeout`. Its pointers stay valid until Answer().
  std::optional<atl_event> Next(std::chrono::duration<double> timeout) {
    return NextWithin(std::max(0.0, timeout.count()));
  }
  /// Waits without a limit.
  atl_event Next() { return *NextWithin(-1); }

  void Answer(atl_answer_fields answer) {
    answer.size = sizeof(answer);
    atl_error error{};
    internal::Check(atl_answer(client_.get(), &answer, &error), error);
  }

  /// The run as JSON; empty before ATL_EVENT_JOINED.
  std::string RunJson() const { return atl_run_json(client_.get()); }

  /// The live status as JSON.
  std::string Status() const {
    char* json = nullptr;
    atl_error error{};
    internal::Check(atl_status(client_.get(), &json, &error), error);
    const std::unique_ptr<char, void (*)(void*)> owned(json, &atl_free);
    return owned.get();
  }

  /// Leaves after the steps done so far are pushed. Returns at once; the events go on until the end.
  void Drain() {
    atl_error error{};
    internal::Check(atl_drain(client_.get(), &error), error);
  }
  /// Leaves without a push.
  void Stop() {
    atl_error error{};
    internal::Check(atl_stop(client_.get(), &error), error);
  }

  /// The C object, for calls of atoll/client.h; it stays this object's.
  atl_client* get() const noexcept { return client_.get(); }

 private:
  std::optional<atl_event> NextWithin(double seconds) {
    atl_event event{};
    event.size = sizeof(event);
    atl_error error{};
    const atl_code code = atl_next(client_.get(), seconds, &event, &error);
    if (code == ATL_DEADLINE_EXCEEDED) return std::nullopt;
    internal::Check(code, error);
    return event;
  }

  void Serve(const atl_event& event, Trainer& trainer, std::exception_ptr& failure) {
    atl_answer_fields answer{};
    State state;
    StepResult step;
    std::string message;  // these own what `answer` points to
    try {
      Ask(event, trainer, answer, state, step);
    } catch (const std::exception& thrown) {
      failure = std::current_exception();
      message = thrown.what();
    } catch (...) {
      failure = std::current_exception();
      message = "the trainer threw an exception that is no std::exception";
    }
    if (failure) {
      answer = {};
      answer.outcome = ATL_FAILED;
      answer.message = message.c_str();
    }
    Answer(answer);
  }

  void Ask(const atl_event& event, Trainer& trainer, atl_answer_fields& answer, State& state,
           StepResult& step) {
    switch (event.kind) {
      case ATL_EVENT_JOINED:
        return trainer.Joined(RunJson());
      case ATL_EVENT_READ:
        return Copy(event);
      case ATL_EVENT_WRITE:
        return Copy(event);
      case ATL_EVENT_PARTITION:
        return trainer.UsePartition(event.partition, event.partitions);
      case ATL_EVENT_SEEK:
        return trainer.Seek(event.samples);
      case ATL_EVENT_LOAD:
        return trainer.Load(static_cast<const char*>(event.state), event.state_bytes);
      case ATL_EVENT_STEP:
        step = trainer.Step(event.learning_rate);
        answer.outcome = step.outcome;
        answer.message = step.message.c_str();
        answer.loss = step.loss;
        answer.gradient_norm = step.gradient_norm;
        answer.data_seconds = step.data_seconds;
        answer.tokens = step.tokens;
        answer.samples = step.samples;
        return;
      case ATL_EVENT_SAVE:
        state = trainer.Save();
        answer.state = state.bytes.data();
        answer.state_bytes = state.bytes.size();
        answer.state_kind = state.kind.c_str();
        answer.optimizer_steps = state.optimizer_steps;
        return;
      case ATL_EVENT_EVALUATE: {
        const std::optional<EvaluationResult> result = trainer.Evaluate(event.max_batches);
        if (!result) {
          answer.outcome = ATL_DECLINED;
          return;
        }
        answer.outcome = std::isfinite(result->loss) ? ATL_DONE : ATL_NOT_FINITE;
        answer.loss = result->loss;
        answer.tokens = result->tokens;
        return;
      }
      default:
        throw Error(
            ATL_UNIMPLEMENTED,
            "the engine sent event " + std::to_string(event.kind) +
                ", which this program does not know: build it with the header of this library's version");
    }
  }

  void Copy(const atl_event& event) {
    for (std::uint64_t i = 0; i < event.piece_count; ++i) {
      const atl_piece& piece = event.pieces[i];
      float* mine = values_.at(piece.tensor);
      if (mine == nullptr) {
        throw Error(ATL_INVALID_ARGUMENT,
                    "parameter " + std::to_string(piece.tensor) +
                        " has no values: set Parameter::values, or answer READ and WRITE yourself");
      }
      if (event.kind == ATL_EVENT_READ) {
        std::copy_n(mine, piece.elements, piece.values);
      } else {
        std::copy_n(piece.values, piece.elements, mine);
      }
    }
  }

  std::unique_ptr<atl_client, internal::Closer> client_;
  std::vector<float*> values_;  // one for each parameter
};

/// A published version of a run's parameters, read without joining. Move-only.
class Snapshot {
 public:
  struct View {
    std::string name;
    std::vector<std::int64_t> shape;
    const float* values = nullptr;  ///< valid as long as the snapshot
    std::uint64_t elements = 0;
  };

  /// Pulls the newest version. Waits at most a minute for a coordinator that does not answer, or a run
  /// without a published version; with the option wait-forever without end. Throws Error.
  explicit Snapshot(const Options& options) : Snapshot(options, [] { return false; }) {}

  /// Asks `cancelled` about four times a second while it waits, and gives up when it returns true: an Error
  /// with ATL_CANCELLED.
  Snapshot(const Options& options, const std::function<bool()>& cancelled) {
    const std::vector<atl_option> views = internal::Views(options);
    atl_snapshot* snapshot = nullptr;
    atl_error error{};
    internal::Check(atl_snapshot_open(views.data(), views.size(), &snapshot, &error), error);
    snapshot_.reset(snapshot);
    for (;;) {
      const atl_code code = atl_snapshot_wait(snapshot, 0.25, &error);
      if (code == ATL_OK) return;
      if (code != ATL_DEADLINE_EXCEEDED) throw Error(code, error.message);
      if (cancelled()) throw Error(ATL_CANCELLED, "the caller gave up the pull");
    }
  }

  std::uint64_t Version() const { return atl_snapshot_version(snapshot_.get()); }
  std::string RunJson() const { return atl_snapshot_run_json(snapshot_.get()); }
  std::size_t TensorCount() const { return atl_snapshot_tensor_count(snapshot_.get()); }

  View Tensor(std::size_t index) const {
    atl_tensor tensor{};
    tensor.size = sizeof(tensor);
    View view;
    atl_error error{};
    internal::Check(
        atl_snapshot_tensor(snapshot_.get(), index, &tensor, &view.values, &view.elements, &error), error);
    view.name = tensor.name;
    view.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    return view;
  }

 private:
  std::unique_ptr<atl_snapshot, internal::Closer> snapshot_;
};

}  // namespace v1
}  // namespace atl

#endif  // ATOLL_CLIENT_HPP_
