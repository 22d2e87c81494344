#ifndef ATOLL_CLI_METRIC_WRITER_H_
#define ATOLL_CLI_METRIC_WRITER_H_

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"

namespace atl {

/// Takes the points of a run in order of time and writes them somewhere. Not thread-safe.
class MetricWriter {
 public:
  virtual ~MetricWriter() = default;
  virtual absl::Status Add(const v1::MetricPoint& point) = 0;
  /// Call once at the end: only then is everything written.
  virtual absl::Status Finish() = 0;
};

/// RFC 4180 with a header line: unix_time,name,worker,version,committed_tokens,value. Times are seconds with
/// nine decimals; values have every digit they need; NaN and infinities are nan, inf and -inf. `out` outlives
/// the writer.
std::unique_ptr<MetricWriter> CsvWriter(std::ostream* out);

/// One JSON object a line with the columns of the CSV file; a value that is not finite is null.
std::unique_ptr<MetricWriter> JsonLinesWriter(std::ostream* out);

/// TensorBoard event files under `folder`: those of the run in run/, those of a worker in worker-NAME/, which
/// TensorBoard shows as runs over each other. Tag: the point's name; step: its version; the value is rounded
/// to float32. The files have `run_id` in their names and replace those of earlier exports of the same run,
/// and of no other. InvalidArgument when it cannot be part of a file's name. Each worker takes two open files
/// until the end: raises the process's limit of open files (common/process_setup.h).
absl::StatusOr<std::unique_ptr<MetricWriter>> TensorBoardWriter(std::string folder,
                                                                const std::string& run_id);

}  // namespace atl

#endif  // ATOLL_CLI_METRIC_WRITER_H_
