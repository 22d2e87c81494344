// libatoll_client against a real coordinator and a real engine.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/model_shape.h"
#include "gmock/gmock.h"
#include "tests/client/library/caller.h"
#include "tests/client/library/processes.h"
#include "tests/integration/coordinator_program.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

constexpr char kLoop[] = ATOLL_BIN_DIR "/../tests/quadratic_loop";

/// The manifest of the run in `Config`.
Manifest TinyManifest() {
  GptOptions gpt;
  gpt.layers = 1;
  gpt.heads = 1;
  gpt.width = 32;
  gpt.context = 16;
  gpt.vocabulary = 256;
  return ManifestOf(ModelOptions(gpt)).value();
}

class LibraryTest : public CoordinatorProgram {
 protected:
  /// A run of so many workers and rounds.
  void Serve(int workers, int rounds, const std::string& more = "",
             const std::string& model =
                 "model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}\n"
                 "data: {tokenizer: bytes}\n") {
    const std::string config = "run: {name: tiny, workers: " + std::to_string(workers) +
                               ", rounds: " + std::to_string(rounds) + "}\n" + model +
                               "inner: {steps: 3, learning_rate: 1e-3, warmup_steps: 0, batch: 2}\n"
                               "codec: {push: fp32, pull_delta: none}\n" +
                               more;
    ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), config).ok());
    coordinator_ = CoordinatorProgram::Serve({"--config", dir_.File("run.yaml")});
    ASSERT_NE(coordinator_, nullptr);
  }
  Caller::Options Options(const std::string& name) const {
    return {{"coordinator", Address("data")},
            {"state-dir", dir_.File("state-" + name)},
            {"name", name},
            {"log-file", dir_.File("log-" + name)}};
  }
  std::string LogOf(const std::string& name) const { return ReadFile(dir_.File("log-" + name)).value_or(""); }
  std::unique_ptr<Process> StartLoop(const std::string& name, const std::vector<std::string>& more = {}) {
    std::ofstream tensors(dir_.File("tensors"));
    for (const TensorSpec& tensor : manifest_.tensors) {
      tensors << tensor.name << ' ' << (tensor.embedding ? 1 : 0) << ' ' << tensor.shape.size();
      for (const int64_t size : tensor.shape) tensors << ' ' << size;
      tensors << '\n';
    }
    tensors.close();
    std::vector<std::string> arguments = {kLoop,
                                          dir_.File("tensors"),
                                          dir_.File("log-" + name),
                                          "coordinator=" + Address("data"),
                                          "name=" + name,
                                          "state-dir=" + dir_.File("state-" + name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto process = Process::Start(arguments, Out(name));
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }
  std::string Out(const std::string& name) const { return dir_.File("out-" + name); }
  std::string Said(const std::string& name) const { return ReadFile(Out(name)).value_or(""); }

  const Manifest manifest_ = TinyManifest();
  std::unique_ptr<Process> coordinator_;
};

TEST_F(LibraryTest, TwoProcessesTrainARunToItsEnd) {
  ASSERT_NO_FATAL_FAILURE(Serve(2, 4));
  auto first = StartLoop("w0");
  auto second = StartLoop("w1");
  EXPECT_EQ(first->Wait(Seconds(120)), 0) << Said("w0") << LogOf("w0");
  EXPECT_EQ(second->Wait(Seconds(120)), 0) << Said("w1") << LogOf("w1");
  for (const std::string name : {"w0", "w1"}) {
    EXPECT_THAT(Said(name), HasSubstr("end 1 code 0: the run is finished"));
    EXPECT_THAT(LogOf(name), HasSubstr("round done"));
  }
}

TEST_F(LibraryTest, LossFallsAndParametersAreThePublishedOnes) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 5));
  Caller caller(manifest_);
  std::vector<double> losses;
  caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind == ATL_EVENT_STEP) losses.push_back(answer.loss);
  };
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_FINISHED}) << end.text << end.message;
  EXPECT_EQ(end.exit_code, 0);
  ASSERT_GE(losses.size(), 15U);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_GE(caller.seen(ATL_EVENT_READ), 1);
  EXPECT_GE(caller.seen(ATL_EVENT_EVALUATE), 1);
  EXPECT_GE(caller.seen(ATL_EVENT_PARTITION), 1);

  atl_error error;
  atl_snapshot* snapshot = nullptr;
  const std::string address = Address("data");
  const atl_option options[] = {{"coordinator", address.c_str()}};
  ASSERT_EQ(atl_pull(options, 1, &snapshot, &error), ATL_OK) << error.message;
  EXPECT_EQ(atl_snapshot_version(snapshot), 5U);
  ASSERT_EQ(atl_snapshot_tensor_count(snapshot), manifest_.tensors.size());
  EXPECT_THAT(atl_snapshot_run_json(snapshot), HasSubstr("\"run\":\"tiny\""));
  for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
    atl_tensor tensor;
    const float* values = nullptr;
    uint64_t elements = 0;
    ASSERT_EQ(atl_snapshot_tensor(snapshot, i, &tensor, &values, &elements, &error), ATL_OK);
    EXPECT_EQ(tensor.name, manifest_.tensors[i].name);
    EXPECT_EQ(std::vector<float>(values, values + elements), caller.values()[i]) << tensor.name;
  }
  EXPECT_EQ(atl_snapshot_tensor(snapshot, manifest_.tensors.size(), nullptr, nullptr, nullptr, &error),
            ATL_OUT_OF_RANGE);
  atl_snapshot_close(snapshot);
}

TEST_F(LibraryTest, ARunGoesOnWithoutACallerThatIsKilled) {
  ASSERT_NO_FATAL_FAILURE(Serve(2, 6));
  // Its child keeps the socket open after it.
  auto victim = StartLoop("w0", {"step-ms=100", "fork-s=600"});
  auto other = StartLoop("w1");
  ASSERT_TRUE(Await([&] { return Said("w0").find("step 2 ") != std::string::npos; }))
      << Said("w0") << LogOf("w0");
  pid_t engine = 0;
  pid_t child = 0;
  for (const pid_t one : ChildrenOf(victim->pid())) (NameOf(one) == "atoll-engine" ? engine : child) = one;
  ASSERT_NE(engine, 0);
  ASSERT_NE(child, 0);
  victim->Kill();
  EXPECT_TRUE(Await([&] { return !Runs(engine); }));
  EXPECT_TRUE(Runs(child));
  ::kill(child, SIGKILL);
  EXPECT_THAT(LogOf("w0"), HasSubstr("the training process has ended"));
  EXPECT_TRUE(Await([&] {
    return Log().find("worker 'w0' left: its training process has ended") != std::string::npos;
  })) << Log();
  EXPECT_EQ(other->Wait(Seconds(120)), 0) << Said("w1") << LogOf("w1");
}

TEST_F(LibraryTest, AnEngineThatIsKilledIsNamedWithItsLog) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  bool killed = false;
  const CallerEnd end = caller.RunToEnd([&] {
    if (killed || caller.steps() < 2) return;
    killed = true;
    for (const pid_t engine : ChildrenOf(::getpid())) {
      if (engine != coordinator_->pid()) ::kill(engine, SIGKILL);
    }
  });
  EXPECT_EQ(end.failed, ATL_INTERNAL);
  EXPECT_THAT(end.message, HasSubstr("was ended by signal 9"));
  EXPECT_THAT(end.message, HasSubstr(dir_.File("log-w0")));
  caller.Close();
  // The state directory is free again, and the worker comes back as itself.
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  EXPECT_EQ(caller.RunToEnd([&] { atl_stop(caller.client(), nullptr); }).reason, uint32_t{ATL_END_STOPPED});
}

TEST_F(LibraryTest, ADrainPushesWhatIsDone) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  // Before the answer, so that no further step is on its way.
  caller.amend = [&](const atl_event& event, atl_answer_fields&) {
    if (event.kind != ATL_EVENT_STEP || caller.steps() != 7) return;
    EXPECT_EQ(atl_drain(caller.client(), nullptr), ATL_OK);
  };
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_DRAINED}) << end.text << end.message;
  EXPECT_EQ(end.code, ATL_OK);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(caller.steps(), 7U);
  EXPECT_THAT(LogOf("w0"), HasSubstr("drained: nothing that was pushed last is lost"));
}

TEST_F(LibraryTest, ADrainWithNothingToPushIsADrain) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  ASSERT_EQ(atl_drain(caller.client(), nullptr), ATL_OK);
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_DRAINED}) << end.text << end.message;
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(LibraryTest, AStopPushesNothing) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  // While STEP waits for its answer: END comes all the same, and the late answer is taken.
  atl_event event;
  do {
    ASSERT_EQ(caller.Next(-1, event), ATL_OK) << caller.error().message;
    if (event.kind == ATL_EVENT_STEP) {
      ASSERT_EQ(atl_stop(caller.client(), nullptr), ATL_OK);
    }
    ASSERT_EQ(caller.Answer(event), ATL_OK);
  } while (event.kind != ATL_EVENT_STEP);
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_STOPPED}) << end.text << end.message;
  EXPECT_EQ(end.code, ATL_CANCELLED);
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(LibraryTest, DataThatIsOverDrains) {
  for (const std::string mode : {"blocking", "overlapped"}) {
    ASSERT_NO_FATAL_FAILURE(
        Serve(1, 1000, mode == "blocking" ? "" : "sync: {mode: overlapped, fragments: 2, delay_steps: 1}\n"));
    Caller caller(manifest_);
    caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
      if (event.kind == ATL_EVENT_STEP && caller.steps() > 10) answer.outcome = ATL_DECLINED;
    };
    ASSERT_EQ(caller.Open(Options(mode)), ATL_OK) << caller.error().message;
    const CallerEnd end = caller.RunToEnd();
    EXPECT_EQ(end.reason, uint32_t{ATL_END_DRAINED}) << mode << end.text << end.message;
    EXPECT_EQ(caller.seen(ATL_EVENT_STEP), 11) << mode;
    coordinator_->Kill();
    ASSERT_TRUE(RemoveAll(dir_.File("data")).ok());
  }
}

TEST_F(LibraryTest, ACallerThatFailsLeavesWithItsReason) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  for (const atl_event_kind kind : {ATL_EVENT_JOINED, ATL_EVENT_READ, ATL_EVENT_STEP, ATL_EVENT_SAVE}) {
    Caller caller(manifest_);
    caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
      if (event.kind != kind) return;
      answer.outcome = ATL_FAILED;
      answer.message = "out of luck";
    };
    ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
    const CallerEnd end = caller.RunToEnd();
    EXPECT_EQ(end.reason, uint32_t{ATL_END_FAILED}) << kind << end.message;
    EXPECT_EQ(end.code, ATL_ABORTED) << kind;
    EXPECT_THAT(end.text, HasSubstr("out of luck")) << kind;
    EXPECT_NE(end.exit_code, 0) << kind;
  }
}

TEST_F(LibraryTest, AReasonThatIsTooLongIsCut) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  std::string reason = "out of luck: ";
  while (reason.size() < (size_t{65} << 20)) reason += "\xc3\xa4";  // more than a message may have
  Caller caller(manifest_);
  caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind != ATL_EVENT_STEP) return;
    answer.outcome = ATL_FAILED;
    answer.message = reason.c_str();
  };
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_FAILED}) << end.message;
  EXPECT_THAT(end.text, HasSubstr("out of luck: \xc3\xa4"));
  EXPECT_THAT(end.text, HasSubstr("\xc3\xa4...")) << "a whole character before the cut";
  EXPECT_LT(end.text.size(), size_t{20} << 10);
}

TEST_F(LibraryTest, TextsThatAreTooLongAreNamed) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  const std::string much(size_t{65} << 20, 'x');
  Caller::Options options = Options("w0");
  options.emplace_back("device", much);
  EXPECT_EQ(caller.Open(options), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("the options and tensors have 68"));
  caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind == ATL_EVENT_SAVE) answer.state_kind = much.c_str();
  };
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.failed, ATL_INVALID_ARGUMENT);
  EXPECT_THAT(end.message, HasSubstr("state_kind has more than 65536 bytes"));
}

TEST_F(LibraryTest, ARoundThatIsNotFiniteIsDropped) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 3));
  Caller caller(manifest_);
  caller.amend = [&](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind == ATL_EVENT_STEP && caller.steps() == 2) answer.outcome = ATL_NOT_FINITE;
  };
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  EXPECT_EQ(caller.steps(), 9U + 2U);
}

TEST_F(LibraryTest, AWorkerWithoutHeldOutDataStays) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 3));
  Caller caller(manifest_);
  caller.amend = [](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind == ATL_EVENT_EVALUATE) answer.outcome = ATL_DECLINED;
  };
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  EXPECT_THAT(LogOf("w0"), HasSubstr("this worker evaluates nothing"));
}

TEST_F(LibraryTest, ALaterLifeTakesUpTheState) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller first(manifest_);
  first.state = std::string("moments\0of the optimizer", 24);
  ASSERT_EQ(first.Open(Options("w0")), ATL_OK) << first.error().message;
  EXPECT_EQ(first
                .RunToEnd([&] {
                  if (first.steps() == 7) atl_drain(first.client(), nullptr);
                })
                .reason,
            uint32_t{ATL_END_DRAINED});
  EXPECT_EQ(first.seen(ATL_EVENT_LOAD), 0);
  first.Close();
  Caller second(manifest_);
  ASSERT_EQ(second.Open(Options("w0")), ATL_OK) << second.error().message;
  EXPECT_EQ(second
                .RunToEnd([&] {
                  if (second.steps() == 2) atl_stop(second.client(), nullptr);
                })
                .reason,
            uint32_t{ATL_END_STOPPED});
  EXPECT_EQ(second.loaded(), first.state);
  second.Close();
  // A caller with another optimizer starts without the state.
  Caller third(manifest_);
  third.amend = [](const atl_event& event, atl_answer_fields& answer) {
    if (event.kind != ATL_EVENT_LOAD) return;
    answer.outcome = ATL_FAILED;
    answer.state_kind = "momentum";
  };
  ASSERT_EQ(third.Open(Options("w0")), ATL_OK) << third.error().message;
  EXPECT_EQ(third
                .RunToEnd([&] {
                  if (third.steps() == 1) atl_stop(third.client(), nullptr);
                })
                .reason,
            uint32_t{ATL_END_STOPPED});
  EXPECT_THAT(LogOf("w0"), HasSubstr("the kept state is that of quadratic; this worker has momentum"));
}

TEST_F(LibraryTest, AWrongOptionIsNamed) {
  Caller caller(manifest_);
  const auto open = [&](Caller::Options more) {
    more.insert(more.end(), {{"coordinator", "127.0.0.1:1"}, {"state-dir", dir_.File("state")}});
    return caller.Open(more);
  };
  EXPECT_EQ(open({{"drain-second", "3"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message,
              HasSubstr("unknown option 'drain-second'; did you mean 'drain-seconds'?"));
  EXPECT_EQ(open({{"drain-seconds", "-1"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("drain-seconds"));
  EXPECT_EQ(open({{"role", "boss"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("role"));
  EXPECT_EQ(open({{"name", "W/0"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("W/0"));
  EXPECT_EQ(open({{"name", "a"}, {"name", "b"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("'name' is given twice"));
  EXPECT_EQ(open({{"token-file", dir_.File("none")}}), ATL_NOT_FOUND);
  EXPECT_THAT(caller.error().message, HasSubstr(dir_.File("none")));
  EXPECT_EQ(open({{"log-file", dir_.File("no/such/folder")}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("log-file"));
  EXPECT_EQ(open({{"engine", dir_.File("none")}}), ATL_NOT_FOUND);
  EXPECT_THAT(caller.error().message, HasSubstr("option engine"));
  EXPECT_EQ(caller.Open({{"coordinator", "127.0.0.1:1"}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("'state-dir' is required"));
  EXPECT_EQ(caller.Open({{"state-dir", dir_.File("state")}}), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr("'coordinator' is required"));
}

TEST_F(LibraryTest, MessagesNameOptionsAndNoFlags) {
  const auto open = [&](Caller& caller, Caller::Options more) {
    more.insert(more.end(), {{"coordinator", "127.0.0.1:1"}, {"state-dir", dir_.File("state")}});
    return caller.Open(more);
  };
  const std::string token = "atoll_c80d_" + std::string(64, 'a');
  Caller caller(manifest_);
  EXPECT_EQ(open(caller, {{"token-file", dir_.File(token)}}), ATL_NOT_FOUND);
  EXPECT_THAT(caller.error().message,
              AllOf(testing::StartsWith("option token-file: the value looks like a token"),
                    testing::Not(HasSubstr(token))));
  ASSERT_EQ(open(caller, {{"log-file", dir_.File("log")}}), ATL_OK) << caller.error().message;
  Caller second(manifest_);
  EXPECT_EQ(open(second, {}), ATL_ALREADY_EXISTS);
  EXPECT_THAT(second.error().message,
              HasSubstr("(atoll-engine): a worker of this same process (" + std::to_string(::getpid()) +
                        ") still uses it: close it first, or choose another"));
}

TEST_F(LibraryTest, AWrongTensorIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1));
  const auto end_with = [&](const std::function<void(Manifest&)>& change) {
    Manifest other = manifest_;
    change(other);
    Caller caller(other);
    EXPECT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
    const CallerEnd end = caller.RunToEnd();
    EXPECT_EQ(end.reason, uint32_t{ATL_END_FAILED});
    EXPECT_EQ(end.code, ATL_INVALID_ARGUMENT);
    return end.text;
  };
  const std::string name = manifest_.tensors[1].name;
  EXPECT_THAT(end_with([](Manifest& m) { m.tensors[1].shape[0] += 1; }),
              AllOf(HasSubstr("tensor '" + name + "' has shape"), HasSubstr("in the run")));
  EXPECT_THAT(end_with([](Manifest& m) { m.tensors[1].name = "other"; }),
              HasSubstr("tensor '" + name + "' is missing"));
  EXPECT_THAT(end_with([](Manifest& m) { m.tensors.push_back({.name = "more", .shape = {1}}); }),
              HasSubstr("tensor 'more' of shape [1] is not in the run"));
  EXPECT_THAT(end_with([](Manifest& m) { std::swap(m.tensors[1], m.tensors[2]); }),
              HasSubstr("the order differs"));
  Manifest twice = manifest_;
  twice.tensors[2].name = name;
  Caller caller(twice);
  EXPECT_EQ(caller.Open(Options("w1")), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(caller.error().message, HasSubstr(name));
  EXPECT_EQ(Caller(Manifest()).Open(Options("w1")), ATL_INVALID_ARGUMENT);
}

TEST_F(LibraryTest, AModelOfAnotherSizeThanConfiguredDoesNotJoin) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 2, "", "model: {external: {parameters: 14}}\n"));
  const Manifest wrong = {{{.name = "w", .shape = {12}}, {.name = "mean", .shape = {3}, .averaged = true}}};
  Caller first(wrong);
  ASSERT_EQ(first.Open(Options("w0")), ATL_OK) << first.error().message;
  const CallerEnd end = first.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_FAILED});
  EXPECT_EQ(end.code, ATL_INVALID_ARGUMENT);
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.text, HasSubstr("model.external.parameters is 14, and the model has 15 in 2 tensors: 12 "
                                  "parameters and 3 averaged values, which count too"));
  EXPECT_TRUE(Await([&] {
    return Log().find("the run cannot begin with the model of worker 'w0'") != std::string::npos;
  })) << Log();
  const Manifest right = {{{.name = "w", .shape = {11}}, {.name = "mean", .shape = {3}, .averaged = true}}};
  Caller second(right);
  ASSERT_EQ(second.Open(Options("w1")), ATL_OK) << second.error().message;
  EXPECT_EQ(second.RunToEnd().reason, uint32_t{ATL_END_FINISHED}) << LogOf("w1");
}

TEST_F(LibraryTest, TheFirstCallerBringsAModelThatOnlyCallersKnow) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 6, "", "model: external\n"));
  const Manifest odd = {{{.name = "table", .shape = {11, 9}, .embedding = true},
                         {.name = "scale", .shape = {}, .averaged = true},
                         {.name = "deep/kernel.0", .shape = {7, 5, 3}, .embedding = false}}};
  const std::string base(64, 'a');
  Caller::Options options = Options("w0");
  options.emplace_back("base-fingerprint", base);
  options.emplace_back("data-fingerprint", std::string(64, 'd'));
  Caller first(odd);
  ASSERT_EQ(first.Open(options), ATL_OK) << first.error().message;
  std::string wrong_shape;
  std::string wrong_base;
  const CallerEnd end = first.RunToEnd([&] {
    if (first.steps() != 4 || !wrong_shape.empty()) return;
    Manifest other = odd;
    other.tensors[0].shape = {11, 10};
    Caller second(other);
    ASSERT_EQ(second.Open(Options("w1")), ATL_OK) << second.error().message;
    wrong_shape = second.RunToEnd().text;
    Caller third(odd);
    ASSERT_EQ(third.Open(Options("w2")), ATL_OK) << third.error().message;
    wrong_base = third.RunToEnd().text;
  });
  EXPECT_EQ(end.reason, uint32_t{ATL_END_FINISHED}) << end.text << end.message;
  EXPECT_THAT(wrong_shape, HasSubstr("tensor 'table' has shape [11, 10]"));
  EXPECT_THAT(wrong_base, HasSubstr("base_fingerprint is none, and " + base));
  EXPECT_EQ(first.steps(), 18U);
}

TEST_F(LibraryTest, ANameAndAStateDirectoryHaveOneOwner) {
  ASSERT_NO_FATAL_FAILURE(Serve(2, 1000));
  Caller owner(manifest_);
  ASSERT_EQ(owner.Open(Options("w0")), ATL_OK) << owner.error().message;
  atl_event event;
  do {
    ASSERT_EQ(owner.Next(-1, event), ATL_OK);
    ASSERT_EQ(owner.Answer(event), ATL_OK);
  } while (event.kind != ATL_EVENT_STEP);
  Caller second(manifest_);
  EXPECT_EQ(second.Open(Options("w0")), ATL_ALREADY_EXISTS);
  EXPECT_THAT(second.error().message, HasSubstr(dir_.File("state-w0")));
  Caller::Options options = Options("w0");
  options[1].second = dir_.File("state-elsewhere");
  ASSERT_EQ(second.Open(options), ATL_OK) << second.error().message;
  const CallerEnd end = second.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_FAILED});
  EXPECT_EQ(end.code, ATL_ALREADY_EXISTS) << end.text;
  EXPECT_THAT(end.text, HasSubstr("w0"));
}

TEST_F(LibraryTest, WithoutACoordinatorItWaitsUntilItIsStopped) {
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open({{"coordinator", "127.0.0.1:1"},
                         {"state-dir", dir_.File("state")},
                         {"log-file", dir_.File("log-w0")}}),
            ATL_OK)
      << caller.error().message;
  atl_event event;
  EXPECT_EQ(caller.Next(0.05, event), ATL_DEADLINE_EXCEEDED);
  EXPECT_TRUE(Await([&] {
    char* json = nullptr;
    EXPECT_EQ(atl_status(caller.client(), &json, nullptr), ATL_OK);
    const std::string text = json;
    atl_free(json);
    return text.find("\"phase\":\"joining\"") != std::string::npos &&
           text.find("\"waiting_for\":\"\"") == std::string::npos;
  }));
  ASSERT_EQ(atl_stop(caller.client(), nullptr), ATL_OK);
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_STOPPED});
}

TEST_F(LibraryTest, CallsOutOfOrderAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  EXPECT_STREQ(atl_run_json(caller.client()), "");
  atl_event event = {};
  EXPECT_EQ(caller.Answer(event), ATL_FAILED_PRECONDITION);
  ASSERT_EQ(caller.Next(-1, event), ATL_OK);
  EXPECT_EQ(event.kind, uint32_t{ATL_EVENT_JOINED});
  EXPECT_THAT(atl_run_json(caller.client()), HasSubstr("\"worker\":\"w0\""));
  atl_event other;
  EXPECT_EQ(caller.Next(0, other), ATL_FAILED_PRECONDITION);
  EXPECT_THAT(caller.error().message, HasSubstr("JOINED is not answered"));
  atl_answer_fields wrong = {};
  wrong.size = sizeof(wrong);
  wrong.outcome = ATL_DECLINED;
  EXPECT_EQ(atl_answer(caller.client(), &wrong, nullptr), ATL_INVALID_ARGUMENT);
  ASSERT_EQ(caller.Answer(event), ATL_OK);
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  EXPECT_EQ(caller.Next(0, event), ATL_FAILED_PRECONDITION);
  EXPECT_THAT(caller.error().message, HasSubstr("the worker has left (the run is finished)"));
  EXPECT_EQ(caller.Answer(event), ATL_FAILED_PRECONDITION);
  EXPECT_EQ(atl_drain(caller.client(), nullptr), ATL_OK);
  event.size = 0;
  EXPECT_EQ(atl_next(caller.client(), 0, &event, nullptr), ATL_INVALID_ARGUMENT);
  EXPECT_EQ(atl_next(nullptr, 0, &event, nullptr), ATL_INVALID_ARGUMENT);
  EXPECT_EQ(atl_open(nullptr, 1, nullptr, 0, nullptr, nullptr), ATL_INVALID_ARGUMENT);
}

TEST_F(LibraryTest, TwoClientsOfOneProcessAreTwoWorkers) {
  ASSERT_NO_FATAL_FAILURE(Serve(2, 4));
  Caller first(manifest_);
  Caller second(manifest_);
  ASSERT_EQ(first.Open(Options("w0")), ATL_OK) << first.error().message;
  ASSERT_EQ(second.Open(Options("w1")), ATL_OK) << second.error().message;
  CallerEnd other;
  std::thread thread([&] { other = second.RunToEnd(); });
  EXPECT_EQ(first.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  thread.join();
  EXPECT_EQ(other.reason, uint32_t{ATL_END_FINISHED}) << other.message;
  EXPECT_EQ(first.values(), second.values());
}

TEST_F(LibraryTest, AForkedChildCannotUseTheClientAndDoesNotHarmIt) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 3));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  const pid_t child = ::fork();
  if (child == 0) {
    atl_event event = {};
    event.size = sizeof(event);
    atl_error error = {};
    const bool refused = atl_next(caller.client(), 0, &event, &error) == ATL_FAILED_PRECONDITION &&
                         std::string(error.message).find("fork") != std::string::npos &&
                         atl_stop(caller.client(), &error) == ATL_FAILED_PRECONDITION;
    caller.Close();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
}

TEST_F(LibraryTest, SignalsOfATerminalLeaveTheEngineAlone) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1000));
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  caller.amend = [&](const atl_event& event, atl_answer_fields&) {
    if (event.kind != ATL_EVENT_STEP) return;
    if (caller.steps() == 2) {
      for (const pid_t engine : ChildrenOf(::getpid())) {
        if (engine == coordinator_->pid()) continue;
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::kill(engine, number);
      }
    }
    if (caller.steps() == 9) {
      EXPECT_EQ(atl_drain(caller.client(), nullptr), ATL_OK);
    }
  };
  const CallerEnd end = caller.RunToEnd();
  EXPECT_EQ(end.reason, uint32_t{ATL_END_DRAINED}) << end.text << end.message;
  EXPECT_EQ(caller.steps(), 9U);
}

TEST_F(LibraryTest, AnEvaluatorOnlyEvaluates) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 3, "evaluation: {by: evaluator}\n"));
  Caller evaluator(manifest_);
  Caller::Options options = Options("e0");
  options.emplace_back("role", "evaluator");
  ASSERT_EQ(evaluator.Open(options), ATL_OK) << evaluator.error().message;
  CallerEnd other;
  std::thread thread([&] { other = evaluator.RunToEnd(); });
  Caller trainer(manifest_);
  ASSERT_EQ(trainer.Open(Options("w0")), ATL_OK) << trainer.error().message;
  EXPECT_EQ(trainer.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  thread.join();
  EXPECT_EQ(other.reason, uint32_t{ATL_END_FINISHED}) << other.message;
  EXPECT_EQ(evaluator.steps(), 0U);
  EXPECT_GE(evaluator.seen(ATL_EVENT_EVALUATE), 1);
  EXPECT_EQ(trainer.seen(ATL_EVENT_EVALUATE), 0);
}

TEST_F(LibraryTest, ThePullOfARunThatIsNotThereFails) {
  atl_error error;
  atl_snapshot* snapshot = nullptr;
  const atl_option wrong[] = {{"coordinator", "nowhere"}};
  EXPECT_EQ(atl_pull(wrong, 1, &snapshot, &error), ATL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("nowhere"));
  EXPECT_EQ(snapshot, nullptr);
}

TEST_F(LibraryTest, APullWaitsForTheFirstVersion) {
  ASSERT_NO_FATAL_FAILURE(Serve(1, 1));
  const std::string address = Address("data");
  const std::string log = dir_.File("log-pull");
  const atl_option options[] = {{"coordinator", address.c_str()}, {"log-file", log.c_str()}};
  atl_error error;
  atl_snapshot* snapshot = nullptr;
  ASSERT_EQ(atl_snapshot_open(options, 2, &snapshot, &error), ATL_OK) << error.message;
  EXPECT_TRUE(Await([&] {
    return LogOf("pull").find("the run 'tiny' has no published version yet") != std::string::npos;
  }));
  EXPECT_EQ(atl_snapshot_wait(snapshot, 0.01, &error), ATL_DEADLINE_EXCEEDED);
  EXPECT_EQ(atl_snapshot_tensor_count(snapshot), 0U);
  Caller caller(manifest_);
  ASSERT_EQ(caller.Open(Options("w0")), ATL_OK) << caller.error().message;
  EXPECT_EQ(caller.RunToEnd().reason, uint32_t{ATL_END_FINISHED});
  EXPECT_EQ(atl_snapshot_wait(snapshot, -1, &error), ATL_OK) << error.message;
  EXPECT_EQ(atl_snapshot_wait(snapshot, 0, &error), ATL_OK) << "again is no error";
  EXPECT_EQ(atl_snapshot_tensor_count(snapshot), manifest_.tensors.size());
  atl_snapshot_close(snapshot);
}

TEST_F(LibraryTest, APullThatIsGivenUpEndsItsEngine) {
  const atl_option options[] = {{"coordinator", "127.0.0.1:1"}, {"log-level", "off"}};
  atl_error error;
  atl_snapshot* snapshot = nullptr;
  ASSERT_EQ(atl_snapshot_open(options, 2, &snapshot, &error), ATL_OK) << error.message;
  EXPECT_EQ(atl_snapshot_wait(snapshot, 0.05, &error), ATL_DEADLINE_EXCEEDED);
  EXPECT_THAT(error.message, HasSubstr("not there yet"));
  ASSERT_EQ(ChildrenOf(::getpid()).size(), 1U);
  const pid_t engine = ChildrenOf(::getpid()).front();
  atl_snapshot_close(snapshot);
  EXPECT_FALSE(Runs(engine));
}

}  // namespace
}  // namespace atl
