#ifndef ATOLL_CLI_DASHBOARD_H_
#define ATOLL_CLI_DASHBOARD_H_

#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

// What `atollctl watch` and `atollctl status` show, as lines of text. Pure: the same replies give the same
// lines.

namespace atl {

struct DashboardStyle {
  int width = 100;     // columns
  int height = 30;     // rows of the terminal; the curve takes what the rest leaves
  bool colour = true;  // ANSI colours
};

/// The whole live view: run, progress, losses, traffic, what is waited for, loss curve, workers. Fewer lines
/// than the height, none wider than the width: what does not fit is wrapped or cut, from below.
std::vector<std::string> RenderDashboard(const v1::GetStatusReply& status,
                                         const v1::ListWorkersReply& workers, const DashboardStyle& style);

/// The head of the view without curve and workers, for `atollctl status`.
std::vector<std::string> RenderStatus(const v1::GetStatusReply& status, const DashboardStyle& style);

/// One line per worker under a header line.
std::vector<std::string> RenderWorkers(const v1::ListWorkersReply& workers, const DashboardStyle& style);

/// One line that stands for the whole view where there is no terminal.
std::string RenderLine(const v1::GetStatusReply& status);

/// What the run came to: losses and perplexities at the start and the end, traffic, where things are.
std::vector<std::string> RenderSummary(const v1::GetStatusReply& status, const DashboardStyle& style);

/// "3.1x", "52x", ...: how many times fewer bytes moved than data-parallel training would have moved; "-"
/// before any.
std::string TrafficRatio(const v1::Traffic& traffic);

}  // namespace atl

#endif  // ATOLL_CLI_DASHBOARD_H_
