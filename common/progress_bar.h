#ifndef ATOLL_COMMON_PROGRESS_BAR_H_
#define ATOLL_COMMON_PROGRESS_BAR_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "common/clock.h"

namespace atl {

enum class ProgressUnit { kBytes, kCount };
enum class ProgressStyle { kTerminal, kPlain };

/// kTerminal if the descriptor is a terminal that can move its cursor (TERM is not "dumb"), else kPlain.
ProgressStyle ProgressStyleFor(int fd, const char* term);

struct ProgressOptions {
  std::string label;
  uint64_t total = 0;  // 0: unknown
  ProgressUnit unit = ProgressUnit::kCount;
  ProgressStyle style = ProgressStyle::kPlain;
  Duration redraw = Seconds(0.1);  // terminal
  Duration interval = Seconds(5);  // plain: time between lines
};

/// Shows the progress of a long job: one line redrawn in place on a terminal, plain lines at intervals
/// elsewhere.
///
///   tokenize  [=========>          ]  47%  18.9 MiB of 40.0 MiB  62.1 MiB/s  0.3 s left
///
/// Not thread-safe. The clock and the stream outlive it.
class ProgressBar {
 public:
  ProgressBar(ProgressOptions options, const Clock* clock, std::ostream* out);
  /// Ends the line if Finish was not called, as after an error.
  ~ProgressBar();

  void Update(uint64_t done);
  /// Writes the last line with the total. Further calls do nothing.
  void Finish();

 private:
  std::string Line(bool final) const;
  void Draw(const std::string& line);

  const ProgressOptions options_;
  const Clock* const clock_;
  std::ostream* const out_;
  const MonoTime started_;
  MonoTime drawn_;
  uint64_t done_ = 0;
  size_t drawn_width_ = 0;
  bool finished_ = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_PROGRESS_BAR_H_
