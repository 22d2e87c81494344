#ifndef ATOLL_SERVER_RUN_RUN_STATISTICS_H_
#define ATOLL_SERVER_RUN_RUN_STATISTICS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/contribution.h"
#include "core/fragment_plan.h"
#include "core/run_options.h"
#include "server/publish/version_ancestry.h"
#include "server/run/run_configs.h"
#include "server/views.h"
#include "storage/run_store.h"

namespace atl {

/// Parameters in a fragment, padding left out.
uint64_t ParametersIn(const FragmentLayout& layout);

/// Weighted mean of the training losses that this model may have (weights as merged); 0 without any.
double MeanLoss(const RoundRecord& record, const ModelOptions& model);

/// The account of the run: rounds closed, tokens, evaluations, traffic, pace. Pure state, not thread-safe.
///
/// The run's tokens are those of fragment 0: a worker's contributions to different fragments are of the same
/// inner steps. Each fragment's own are counted besides, since overlapped ones do not advance together.
class RunStatistics {
 public:
  /// `configs` outlives it: the token budget and the schedule.
  explicit RunStatistics(const RunConfigs* configs) : configs_(configs) {}

  /// From what is on disk: rounds ascending by (fragment, version). Open times are taken from the records'
  /// wall clock; bytes pulled before are taken to be one pull per contribution.
  void Restore(const std::vector<RoundRecord>& rounds, const std::vector<EvaluationEntry>& evaluations,
               const std::vector<FragmentLayout>& layouts);

  /// Tokens that a round of these contributions adds to the run's.
  uint64_t TokensOf(FragmentId fragment, const std::vector<Contribution>& contributions) const;

  /// A version was committed and published. `idle_seconds`: of the open time, without any worker; the pace
  /// leaves it out. None: the open time says nothing of how long the work took, and the pace leaves out the
  /// round.
  RoundSummaryView Close(const RoundRecord& record, const FragmentLayout& layout, double open_seconds,
                         double commit_seconds, std::optional<double> idle_seconds = 0.0);

  /// Privacy that was spent up to the round closed last.
  void NoteEpsilon(double epsilon) { rounds_.back().epsilon = epsilon; }

  /// A fragment whose contents are those of an older version now, under a new number.
  struct RestoredFragment {
    FragmentId fragment;
    Version version;
    Version source;
  };
  /// The run goes on from other contents.
  void Restored(uint64_t committed_tokens, const std::vector<RestoredFragment>& fragments);
  /// False when this version has one already.
  bool AddEvaluation(const EvaluationView& evaluation);
  void CountPush(uint64_t bytes) { push_bytes_ += bytes; }
  void CountPull(uint64_t bytes) { pull_bytes_ += bytes; }

  uint64_t committed_tokens() const { return committed_tokens_; }
  /// Of the contributions to this fragment.
  uint64_t committed_tokens(FragmentId fragment) const;
  bool budget_spent() const { return committed_tokens_ >= configs_->run().total_tokens(); }
  bool budget_spent(FragmentId fragment) const {
    return committed_tokens(fragment) >= configs_->run().total_tokens();
  }
  /// Tokens per second over the last rounds of fragment 0 that this coordinator closed; 0: not known.
  /// `open_seconds`: age of the round in progress, without its idle time, which counts as far as it is longer
  /// than those were.
  double Pace(double open_seconds = 0) const;
  /// At this pace; 0: not known, or nothing is left to do.
  double EtaSeconds(double pace) const;
  /// Merge and commit, on average over the same rounds; 0: not known.
  double CommitSeconds() const;
  double PositionSteps() const;

  /// Fills the fields of the status that this account knows, with the newest `history` entries.
  void Describe(uint32_t history, StatusView& status) const;

 private:
  void Account(const RoundRecord& record, const FragmentLayout& layout);
  bool IsAncestorOfHead(FragmentId fragment, Version version) const;

  const RunConfigs* configs_;
  uint64_t committed_tokens_ = 0;
  uint64_t restored_tokens_ = 0;                    // of every fragment, when a restore was the last to say
  std::map<FragmentId, uint64_t> fragment_tokens_;  // of those that had a round since
  uint64_t push_bytes_ = 0;
  uint64_t pull_bytes_ = 0;
  uint64_t data_parallel_bytes_ = 0;
  std::deque<RoundSummaryView> rounds_;  // the newest, in order of closing
  std::deque<RoundSummaryView> own_;     // of fragment 0, closed by this coordinator: for the pace
  std::map<Version, EvaluationView> evaluations_;
  std::map<FragmentId, VersionAncestry> ancestries_;  // of those that were ever restored
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_RUN_STATISTICS_H_
