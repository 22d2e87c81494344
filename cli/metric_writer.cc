#include "cli/metric_writer.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr int64_t kNanos = 1'000'000'000;

std::string UnixTime(int64_t nanos) { return absl::StrFormat("%d.%09d", nanos / kNanos, nanos % kNanos); }

std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return "\"" + absl::StrReplaceAll(text, {{"\"", "\"\""}}) + "\"";
}

absl::Status CheckStream(const std::ostream& out) {
  if (out.good()) return absl::OkStatus();
  return absl::ResourceExhaustedError("the metrics cannot be written: is the disk full?");
}

class Csv final : public MetricWriter {
 public:
  explicit Csv(std::ostream* out) : out_(out) {
    *out_ << "unix_time,name,worker,version,committed_tokens,value\n";
  }
  absl::Status Add(const v1::MetricPoint& point) override {
    *out_ << absl::StrFormat("%s,%s,%s,%d,%d,%.17g\n", UnixTime(point.unix_nanos()), Field(point.name()),
                             Field(point.worker()), point.version(), point.committed_tokens(), point.value());
    return CheckStream(*out_);
  }
  absl::Status Finish() override {
    out_->flush();
    return CheckStream(*out_);
  }

 private:
  std::ostream* const out_;
};

class JsonLines final : public MetricWriter {
 public:
  explicit JsonLines(std::ostream* out) : out_(out) {}
  absl::Status Add(const v1::MetricPoint& point) override {
    nlohmann::ordered_json line;
    line["unix_time"] = static_cast<double>(point.unix_nanos()) * 1e-9;
    line["name"] = point.name();
    line["worker"] = point.worker();
    line["version"] = point.version();
    line["committed_tokens"] = point.committed_tokens();
    line["value"] = point.value();  // null when it is not finite
    // Names may come from a worker, so replace invalid UTF-8 instead of throwing.
    *out_ << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return CheckStream(*out_);
  }
  absl::Status Finish() override {
    out_->flush();
    return CheckStream(*out_);
  }

 private:
  std::ostream* const out_;
};

}  // namespace

std::unique_ptr<MetricWriter> CsvWriter(std::ostream* out) { return std::make_unique<Csv>(out); }

std::unique_ptr<MetricWriter> JsonLinesWriter(std::ostream* out) { return std::make_unique<JsonLines>(out); }

}  // namespace atl
