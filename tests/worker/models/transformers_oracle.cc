#include "tests/worker/models/transformers_oracle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/file.h"
#include "tests/paths.h"

namespace atl::testing {
namespace {

std::string Python() {
  const std::string command = absl::StrFormat("%s/scripts/interop.sh --python", ATOLL_SOURCE_DIR);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 4096> line = {};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  return std::string(absl::StripAsciiWhitespace(line.data()));
}

}  // namespace

std::string TransformersMissing() {
  const std::string python = Python();
  if (::access(python.c_str(), X_OK) == 0) return "";
  return absl::StrFormat("there is no '%s'; scripts/setup.sh --groups interop makes it", python);
}

nlohmann::json AskTransformers(const std::string& script, const nlohmann::json& options,
                               const std::string& folder) {
  const std::string given = JoinPath(folder, "options.json"), result = JoinPath(folder, "result.json");
  std::ofstream(given) << options;
  const std::string command = absl::StrFormat("HF_HUB_OFFLINE=1 '%s' -B %s/tests/reference/%s %s %s",
                                              Python(), ATOLL_SOURCE_DIR, script, given, result);
  const int code = std::system(command.c_str());
  EXPECT_EQ(code, 0) << command;
  return code == 0 ? nlohmann::json::parse(std::ifstream(result)) : nlohmann::json();
}

void WriteTensor(const std::string& path, const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.contiguous();
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(whole.data_ptr()), static_cast<std::streamsize>(whole.nbytes()));
}

torch::Tensor ReadFloats(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return torch::empty({0});
  // from_blob takes a mutable pointer; the tensor is only read.
  return torch::from_blob(const_cast<char*>(bytes->data()), {static_cast<int64_t>(bytes->size() / 4)},
                          torch::kFloat32)
      .clone();
}

}  // namespace atl::testing
