#include "cli/round_history.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/loss_text.h"
#include "cli/text.h"

namespace atl {
namespace {

/// An evaluation covers the whole model; its version is that of the first fragment.
constexpr uint32_t kEvaluatedFragment = 0;

std::string LossCell(double loss) { return loss != 0 ? LossNumber(loss) : "-"; }

std::string ValidationCell(const v1::RoundSummary& round, const std::map<uint64_t, double>& validation) {
  const auto found = validation.find(round.version());
  if (round.fragment() != kEvaluatedFragment || found == validation.end()) return "-";
  return LossNumber(found->second);
}

}  // namespace

std::vector<std::string> RenderHistory(const v1::GetStatusReply& status, uint32_t limit) {
  if (status.rounds().empty()) return {"no round has closed yet"};
  std::map<uint64_t, double> validation;
  for (const auto& evaluation : status.evaluations()) validation[evaluation.version()] = evaluation.loss();
  const bool fragments = status.fragments_size() > 1;
  std::vector<Column> columns = {{"version", Align::kRight},
                                 {"closed"},
                                 {"contributions", Align::kRight},
                                 {"train loss", Align::kRight},
                                 {"validation loss", Align::kRight}};
  if (fragments) columns.insert(columns.begin(), {"fragment", Align::kRight});
  std::vector<std::vector<std::string>> rows;
  const int count = status.rounds_size();
  const int first = static_cast<int>(count - std::min<int64_t>(count, limit));
  for (int i = first; i < count; ++i) {
    const v1::RoundSummary& round = status.rounds(i);
    std::vector<std::string>& row = rows.emplace_back();
    if (fragments) row.push_back(absl::StrCat(round.fragment()));
    row.insert(row.end(), {absl::StrCat(round.version()), LocalTime(round.closed_unix_nanos()),
                           absl::StrCat(round.contributions()), LossCell(round.train_loss()),
                           ValidationCell(round, validation)});
  }
  return RenderTable(columns, rows);
}

}  // namespace atl
