#ifndef ATOLL_TESTS_INTEGRATION_COORDINATOR_PROGRAM_H_
#define ATOLL_TESTS_INTEGRATION_COORDINATOR_PROGRAM_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/test_dir.h"
#include "tests/integration/process.h"
#include "tests/paths.h"

namespace atl {

/// atoll-coordinator as a program, on free ports, with a folder of its own: run.yaml, data/, log, ports.
class CoordinatorProgram : public ::testing::Test {
 protected:
  static constexpr char kProgram[] = ATOLL_BIN_DIR "/atoll-coordinator";
  static constexpr char kConfig[] = R"(
run: {name: tiny, workers: 2, rounds: 3}
model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 1e-3, batch: 2}
codec: {push: fp32, pull_delta: none}
)";

  void SetUp() override { ASSERT_TRUE(WriteFileAtomically(dir_.File("run.yaml"), kConfig).ok()); }

  /// Of a flag that is here and in `extra`, the latter counts.
  std::vector<std::string> Arguments(const std::vector<std::string>& extra) const {
    std::vector<std::string> all = {
        kProgram,         "--data-dir",  dir_.File("data"),  "--listen",    "127.0.0.1:0",
        "--admin-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--web-listen",
        "127.0.0.1:0",    "--port-file", dir_.File("ports")};
    all.insert(all.end(), extra.begin(), extra.end());
    return all;
  }

  /// Starts it and waits until it serves; ports_ has its addresses. Null, and a failure, when it does not.
  std::unique_ptr<Process> Serve(const std::vector<std::string>& extra) {
    EXPECT_TRUE(RemoveFile(dir_.File("ports")).ok());
    auto process = Process::Start(Arguments(extra), dir_.File("log"));
    EXPECT_TRUE(process.ok()) << process.status();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!FileExists(dir_.File("ports"))) {
      if (!(*process)->running() || std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "it does not serve:\n" << Log();
        return nullptr;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ports_ = nlohmann::json::parse(*ReadFile(dir_.File("ports")));
    return *std::move(process);
  }
  Finished Run(const std::vector<std::string>& extra) { return RunToEnd(Arguments(extra), Seconds(60)); }
  std::string Log() const { return ReadFile(dir_.File("log")).value_or(""); }
  std::string Address(const std::string& name) const { return ports_.at(name); }
  uint16_t PortOf(const std::string& name) const {
    const std::string address = Address(name);
    return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  TestDir dir_;
  nlohmann::json ports_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_COORDINATOR_PROGRAM_H_
