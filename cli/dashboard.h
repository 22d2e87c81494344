#ifndef ATOLL_CLI_DASHBOARD_H_
#define ATOLL_CLI_DASHBOARD_H_

#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

// The text that `atollctl watch` and `atollctl status` show. Pure: the same replies give the same lines.

namespace atl {

struct DashboardStyle {
  int width = 100;     // columns
  int height = 30;     // rows of the terminal; the curve uses the free rows
  bool colour = true;  // ANSI colours
};

/// The whole live view: run, progress, losses, traffic, waits, loss curve, workers. Has fewer lines than the
/// height and no line wider than the width: long lines are wrapped, and lines at the bottom are cut.
std::vector<std::string> RenderDashboard(const v1::GetStatusReply& status,
                                         const v1::ListWorkersReply& workers, const DashboardStyle& style);

/// The top of the view, without curve and workers, for `atollctl status`.
std::vector<std::string> RenderStatus(const v1::GetStatusReply& status, const DashboardStyle& style);

/// Which run answered, and where: a branch has the run id of its origin, and an epoch of its own. The epoch
/// is in hexadecimal, as in the coordinator's log.
std::string IdentityLine(const v1::GetStatusReply& status, const std::string& address);

/// One line per worker under a header line.
std::vector<std::string> RenderWorkers(const v1::ListWorkersReply& workers, const DashboardStyle& style);

/// One line that replaces the whole view if there is no terminal.
std::string RenderLine(const v1::GetStatusReply& status);

/// The results of the run: losses and perplexities at the start and the end, traffic, location of the files.
std::vector<std::string> RenderSummary(const v1::GetStatusReply& status, const DashboardStyle& style);

/// "3.1x", "52x", ...: how many times fewer bytes moved than with data-parallel training; "-" before any
/// traffic.
std::string TrafficRatio(const v1::Traffic& traffic);

}  // namespace atl

#endif  // ATOLL_CLI_DASHBOARD_H_
