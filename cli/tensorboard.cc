#include "cli/tensorboard.h"

#include <bit>
#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cli/metric_writer.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/partial_file.h"
#include "common/process_setup.h"
#include "common/status.h"
#include "tensorboard/event.pb.h"

namespace atl {
namespace {

constexpr char kFilePrefix[] = "events.out.tfevents.";
// TensorBoard reads every file with "tfevents" in its name, complete or not.
constexpr char kPartial[] = "export.partial";

void AppendLittleEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return std::rotr(crc, 15) + kTfRecordMaskDelta;
}

double WallSeconds(const v1::MetricPoint& point) {
  const auto nanos = static_cast<double>(point.unix_nanos());
  return nanos * 1e-9;
}

/// Checks a name from the network before it becomes part of a path: only the form that the coordinator
/// allows.
bool IsPlainName(std::string_view name) {
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string_view::npos;
}

class Writer final : public MetricWriter {
 public:
  Writer(std::string folder, const std::string& run_id)
      : folder_(std::move(folder)), suffix_(absl::StrFormat(".%s.atoll", run_id)) {}

  absl::Status Add(const v1::MetricPoint& point) override {
    ATOLL_ASSIGN_OR_RETURN(File * file, FileOf(point));
    file->out << TensorBoardScalar(point.name(), static_cast<int64_t>(point.version()), WallSeconds(point),
                                   static_cast<float>(point.value()));
    return Check(*file);
  }

  absl::Status Finish() override {
    // All files are complete before the first one replaces a file of an earlier export.
    for (auto& [run, file] : files_) {
      file.out.close();
      ATOLL_RETURN_IF_ERROR(Check(file));
    }
    for (auto& [run, file] : files_) {
      ATOLL_RETURN_IF_ERROR(file.file->Publish());
      ATOLL_RETURN_IF_ERROR(RemoveOthers(file));
    }
    return absl::OkStatus();
  }

 private:
  struct File {
    std::string folder;
    std::string name;
    std::unique_ptr<PartialFile> file;
    std::ofstream out;
  };

  static absl::Status Check(const File& file) {
    if (file.out.good()) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s cannot be written: is the disk full?", file.file->partial()));
  }

  /// TensorBoard merges all event files of a folder, so files of an earlier export would double the curve.
  absl::Status RemoveOthers(const File& file) const {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(file.folder));
    for (const std::string& name : names) {
      if (name != file.name && absl::StartsWith(name, kFilePrefix) && absl::EndsWith(name, suffix_)) {
        ATOLL_RETURN_IF_ERROR(RemoveFile(JoinPath(file.folder, name)));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<File*> FileOf(const v1::MetricPoint& point) {
    const auto found = files_.find(point.worker());
    if (found != files_.end()) return &found->second;
    if (!IsPlainName(point.worker())) {
      return absl::InvalidArgumentError(
          absl::StrFormat("'%s' is not a worker's name; it cannot name a folder", point.worker()));
    }
    const std::string run = point.worker().empty() ? "run" : "worker-" + point.worker();
    File file;
    file.folder = JoinPath(folder_, run);
    file.name = absl::StrFormat("%s%010.0f%s", kFilePrefix, WallSeconds(point), suffix_);
    ATOLL_RETURN_IF_ERROR(CreateDirs(file.folder));
    ATOLL_ASSIGN_OR_RETURN(
        file.file, PartialFile::Create(JoinPath(file.folder, file.name), JoinPath(file.folder, kPartial)));
    file.out.open(file.file->partial(), std::ios::binary | std::ios::trunc);
    file.out << TensorBoardHeader(WallSeconds(point));
    ATOLL_RETURN_IF_ERROR(Check(file));
    return &files_.emplace(point.worker(), std::move(file)).first->second;
  }

  const std::string folder_;
  const std::string suffix_;           // of the names of this run's files
  std::map<std::string, File> files_;  // by worker; "" for the run
};

}  // namespace

std::string TfRecord(std::string_view data) {
  std::string record;
  AppendLittleEndian(record, data.size(), 8);
  AppendLittleEndian(record, MaskedCrc(record), 4);
  record.append(data);
  AppendLittleEndian(record, MaskedCrc(data), 4);
  return record;
}

std::string TensorBoardHeader(double wall_time_s) {
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_file_version("brain.Event:2");
  return TfRecord(event.SerializeAsString());
}

std::string TensorBoardScalar(const std::string& tag, int64_t step, double wall_time_s, float value) {
  tensorboard::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  auto* scalar = event.mutable_summary()->add_value();
  scalar->set_tag(tag);
  scalar->set_simple_value(value);
  return TfRecord(event.SerializeAsString());
}

absl::StatusOr<std::unique_ptr<MetricWriter>> TensorBoardWriter(std::string folder,
                                                                const std::string& run_id) {
  if (run_id.empty() || !IsPlainName(run_id)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("'%s' is not a run's id; it cannot be part of a file's name", run_id));
  }
  RaiseFileLimit();
  return std::make_unique<Writer>(std::move(folder), run_id);
}

}  // namespace atl
