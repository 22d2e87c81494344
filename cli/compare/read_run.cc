#include "cli/compare/read_run.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/input_file.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace atl {
namespace {

constexpr char kHeader[] = "unix_time,name,worker,version,committed_tokens,value";
constexpr size_t kColumns = 6;
constexpr size_t kMaxLineBytes = 64 << 10;

absl::Status LineError(const std::string& path, size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s, line %d: %s", path, line, what));
}

/// The fields of one line (RFC 4180); false for a quote that is not closed.
bool SplitCsv(const std::string& line, std::vector<std::string>& fields) {
  fields.assign(1, "");
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return !quoted;
}

int64_t Nanos(double seconds) {
  // Beyond the range of 64 bits there is no time.
  return std::abs(seconds) < 9e9 ? static_cast<int64_t>(std::llround(seconds * 1e9)) : 0;
}

/// Empty: the line was read.
std::string ReadCsvLine(const std::string& line, v1::MetricPoint& point) {
  std::vector<std::string> fields;
  if (!SplitCsv(line, fields) || fields.size() != kColumns) {
    return absl::StrFormat("expected %d fields: %s", kColumns, kHeader);
  }
  double time = 0, value = 0;
  uint64_t version = 0, tokens = 0;
  if (!absl::SimpleAtod(fields[0], &time)) return absl::StrCat("'", fields[0], "' is no time");
  if (!absl::SimpleAtoi(fields[3], &version)) return absl::StrCat("'", fields[3], "' is no version");
  if (!absl::SimpleAtoi(fields[4], &tokens)) return absl::StrCat("'", fields[4], "' is no number of tokens");
  if (!absl::SimpleAtod(fields[5], &value)) return absl::StrCat("'", fields[5], "' is no value");
  point.set_unix_nanos(Nanos(time));
  point.set_name(fields[1]);
  point.set_worker(fields[2]);
  point.set_version(version);
  point.set_committed_tokens(tokens);
  point.set_value(value);
  return "";
}

std::string ReadJsonLine(const std::string& line, v1::MetricPoint& point) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return "expected a JSON object";
  const auto has = [&](const char* name, auto check) {
    const auto found = json.find(name);
    return found != json.end() && check(*found);
  };
  const auto number = [](const nlohmann::json& v) { return v.is_number(); };
  const auto whole = [](const nlohmann::json& v) { return v.is_number_unsigned(); };
  const auto text = [](const nlohmann::json& v) { return v.is_string(); };
  const auto value = [](const nlohmann::json& v) { return v.is_number() || v.is_null(); };
  for (const auto& [name, right] :
       {std::pair("unix_time", has("unix_time", number)), std::pair("name", has("name", text)),
        std::pair("version", has("version", whole)),
        std::pair("committed_tokens", has("committed_tokens", whole)),
        std::pair("value", has("value", value))}) {
    if (!right) return absl::StrCat("'", name, "' is missing or of the wrong type");
  }
  point.set_unix_nanos(Nanos(json["unix_time"].get<double>()));
  point.set_name(json["name"].get<std::string>());
  point.set_version(json["version"].get<uint64_t>());
  point.set_committed_tokens(json["committed_tokens"].get<uint64_t>());
  point.set_value(json["value"].is_null() ? std::numeric_limits<double>::quiet_NaN()
                                          : json["value"].get<double>());
  return "";
}

bool IsAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return colon != std::string::npos && colon > 0 && !absl::StrContains(text, '/') &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 && port <= 65535;
}

}  // namespace

absl::StatusOr<RunArgument> ParseRunArgument(const std::string& text) {
  RunArgument run{.name = "", .source = text};
  const size_t equals = text.find('=');
  // A file may have '=' in its name.
  if (equals != std::string::npos && equals > 0 && !FileExists(text)) {
    run.name = text.substr(0, equals);
    run.source = text.substr(equals + 1);
  }
  run.is_file = FileExists(run.source);
  if (run.is_file || IsAddress(run.source)) return run;
  return absl::NotFoundError(
      absl::StrFormat("'%s' is neither a file that exists nor HOST:PORT of a coordinator's admin port. "
                      "`atollctl metrics export "
                      "--format jsonl --out FILE` writes a file",
                      Printable(run.source)));
}

absl::Status ReadMetrics(const std::string& path, std::istream& in, CurveBuilder& builder) {
  std::string line;
  bool csv = false;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.size() > kMaxLineBytes)
      return LineError(path, number, "the line is too long for a metric point");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (number == 1 && line == kHeader) {
      csv = true;
      continue;
    }
    if (number == 1 && line.front() != '{') {
      return LineError(path, number,
                       "this is no file of `atollctl metrics export`: it begins neither with '{' (--format "
                       "jsonl) nor with the heading of --format csv");
    }
    v1::MetricPoint point;
    const std::string complaint = csv ? ReadCsvLine(line, point) : ReadJsonLine(line, point);
    if (!complaint.empty()) return LineError(path, number, Printable(complaint));
    builder.Add(point);
  }
  if (in.bad()) return absl::DataLossError(absl::StrCat(path, ": cannot be read"));
  return absl::OkStatus();
}

absl::Status ReadMetricsFile(const std::string& path, CurveBuilder& builder) {
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor checked, OpenInput(path, InputKind::kFile));
  // By its descriptor: the path may name a pipe or a device by now.
  std::ifstream file(absl::StrCat("/proc/self/fd/", checked.get()), std::ios::binary);
  if (!file) return ErrnoToStatus(errno, "open " + path);
  return ReadMetrics(path, file, builder);
}

}  // namespace atl
