#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_format.h"
#include "core/codec.h"
#include "tests/paths.h"
#include "tests/worker/cuda/push_fixture.h"

namespace atl::device {
namespace {

constexpr uint64_t kElements = 16384;
constexpr double kModel = 124439808;  // parameters of GPT-2 124M
constexpr double kH100 = 3.35e12;     // bytes per second of device memory, by the data sheets
constexpr double kRtx4090 = 1.0e12;

std::string Row(const std::string& kernel, const std::vector<HostExecutor::Traffic>& traffic) {
  uint64_t read = 0;
  uint64_t written = 0;
  for (const HostExecutor::Traffic& moved : traffic) {
    read += moved.read;
    written += moved.written;
  }
  const double bytes = static_cast<double>(read + written) / kElements;
  return absl::StrFormat("| %s | %.3f | %.3f | %.3f | %.2f | %.2f |\n", kernel,
                         static_cast<double>(read) / kElements, static_cast<double>(written) / kElements,
                         bytes, 1e3 * bytes * kModel / kH100, 1e3 * bytes * kModel / kRtx4090);
}

std::string Table() {
  std::string table =
      "| kernel | read (bytes per value) | written | moved | H100: GPT-2 124M (ms) | RTX 4090 (ms) |\n"
      "|---|---|---|---|---|---|\n";
  const PushInput input = PushInput::Of(Input::kRandom, kElements, 1);
  for (const CodecKind codec : kCodecKinds) {
    if (codec == CodecKind::kInt8Quantile) continue;
    const std::string name(CodecName(codec));
    std::vector<std::byte> payload;
    for (const ErrorFeedbackForm form : {ErrorFeedbackForm::kCarry, ErrorFeedbackForm::kMovingAverage}) {
      const auto pushed = PushOnDevice({.codec = codec, .form = form, .threads = 64}, input);
      if (!pushed.ok()) return std::string(pushed.status().message());
      payload = pushed->payload;
      table += Row(name + (form == ErrorFeedbackForm::kCarry ? " push, carry" : " push, moving average"),
                   pushed->traffic);
    }
    std::vector<float> values = input.base;
    std::vector<HostExecutor::Traffic> traffic;
    const absl::Status added = AddOnDevice({.codec = codec, .threads = 64}, payload, values, &traffic);
    if (!added.ok()) return std::string(added.message());
    table += Row(name + " add", traffic);
  }
  return table;
}

// The table of the page is what the executor counts.
TEST(TrafficTest, ThePageHasTheTable) {
  std::ifstream file(ATOLL_SOURCE_DIR "/docs/internals/kernels.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string table = Table();
  EXPECT_NE(page.str().find(table), std::string::npos) << "docs/internals/kernels.md must have this table:\n"
                                                       << table;
}

}  // namespace
}  // namespace atl::device
