#ifndef ATOLL_CLI_TERMINAL_H_
#define ATOLL_CLI_TERMINAL_H_

#include <string>
#include <vector>

#include "cli/dashboard.h"
#include "common/progress_bar.h"

namespace atl {

/// Whether standard output is a terminal, with its size and colours (NO_COLOR and TERM=dumb disable colours).
struct Terminal {
  bool interactive = false;
  DashboardStyle style;
};
Terminal InspectTerminal();

/// How a progress bar on standard error is drawn.
ProgressStyle ErrorStreamStyle();

/// A screen region that is redrawn in place. Hides the cursor and disables line wrapping until destruction.
/// One per process.
class LiveView {
 public:
  LiveView();
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  /// Replaces the shown lines without flicker. Lines beyond the screen's height are cut.
  void Draw(const std::vector<std::string>& lines, int height);
};

}  // namespace atl

#endif  // ATOLL_CLI_TERMINAL_H_
