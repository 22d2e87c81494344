#ifndef ATOLL_CLI_METRIC_WRITER_H_
#define ATOLL_CLI_METRIC_WRITER_H_

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"

namespace atl {

/// Writes the points of a run, in order of time. Not thread-safe.
class MetricWriter {
 public:
  virtual ~MetricWriter() = default;
  virtual absl::Status Add(const v1::MetricPoint& point) = 0;
  /// Call once at the end; the output is complete only after it.
  virtual absl::Status Finish() = 0;
};

/// RFC 4180 with a header line: unix_time,name,worker,version,committed_tokens,value. Times are seconds with
/// nine decimals; values have every digit they need; NaN and infinities are nan, inf and -inf. `out` outlives
/// the writer.
std::unique_ptr<MetricWriter> CsvWriter(std::ostream* out);

/// One JSON object per line, with the columns of the CSV file. A value that is not finite is null.
std::unique_ptr<MetricWriter> JsonLinesWriter(std::ostream* out);

/// TensorBoard event files under `folder`: run/ for the run, worker-NAME/ for each worker. TensorBoard shows
/// them as overlaid runs. Tag: the point's name; step: its version; value: rounded to float32.
/// The file names contain `run_id`, and the files replace only those of earlier exports of the same run.
/// InvalidArgument if `run_id` cannot be part of a file name. Each worker needs two open files until the end,
/// so this raises the process's limit of open files (common/process_setup.h).
absl::StatusOr<std::unique_ptr<MetricWriter>> TensorBoardWriter(std::string folder,
                                                                const std::string& run_id);

}  // namespace atl

#endif  // ATOLL_CLI_METRIC_WRITER_H_
