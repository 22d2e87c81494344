#ifndef ATOLL_SERVER_WEB_LOSS_CURVE_H_
#define ATOLL_SERVER_WEB_LOSS_CURVE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "server/admin/admin_control.h"
#include "server/views.h"

namespace atl {

/// One point: one round, or the mean of some neighbouring ones.
struct CurvePoint {
  Version version;  // of the last of them, as are tokens and time
  uint64_t committed_tokens = 0;
  int64_t unix_ns = 0;
  size_t epoch = 0;                  // how many restores came before it
  double loss = 0;                   // weighted mean over workers; NaN: not known
  std::vector<double> workers = {};  // their own, in the order of LossCurve::workers(); NaN: not known
};

/// A restore made older contents the head again: the training in between is abandoned.
struct CurveRestore {
  Version version;  // that the old contents have now
  uint64_t committed_tokens = 0;
  int64_t unix_ns = 0;
  std::string reason = {};
};

/// Training losses of a whole run in bounded memory. When there are too many points, neighbours are joined,
/// and every later point covers twice as many rounds. Not thread-safe.
class LossCurve {
 public:
  static constexpr size_t kMostPoints = 1000;
  /// Maximum number of workers with separate curves, the first ones; others count only in the mean.
  static constexpr size_t kMostWorkers = 64;
  /// Maximum number of restores; the newest ones are kept.
  static constexpr size_t kMostRestores = 200;

  /// In order of version. One without contributions is a restore: no point, but the next one begins an epoch.
  void Add(const RoundDetailView& round);
  /// Of the newest round that was added, drawn or not.
  Version last() const { return last_; }

  /// Ascending versions; tokens ascend within an epoch. No point joins rounds of two epochs; the last one of
  /// an epoch may stand for fewer rounds than the others.
  std::vector<CurvePoint> Points() const;
  /// Ascending versions.
  const std::vector<CurveRestore>& restores() const { return restores_; }
  /// Whether a later restore went back behind it.
  bool Abandoned(Version version, uint64_t committed_tokens) const;
  const std::vector<WorkerName>& workers() const { return workers_; }
  /// Rounds per point.
  size_t stride() const { return stride_; }

 private:
  /// A sum of points on its way to a mean.
  struct Group {
    CurvePoint sum;
    size_t rounds = 0;
    size_t known = 0;           // of them, rounds whose loss is known
    std::vector<size_t> parts;  // by worker: rounds it had a part in
  };
  size_t IndexOf(const WorkerName& worker);
  static void Join(Group& group, const Group& next);
  void Halve();
  static CurvePoint Mean(const Group& group);

  Version last_;
  size_t stride_ = 1;
  size_t epoch_ = 0;
  std::vector<WorkerName> workers_;
  std::vector<CurveRestore> restores_;
  std::vector<Group> groups_;  // all but the last of an epoch are full
};

/// The losses of versions that were evaluated, with what the curve and the evaluations know, as JSON: columns
/// `version`, `tokens`, `unixSeconds`, `loss`, `epoch`, `abandoned` (by a later restore), one in `workers`
/// for each worker (null: it had no part); `validation` likewise; `restores` with `version`, `tokens`,
/// `unixSeconds`, `reason`; `tasks` with `task`, `metric` and the columns `version`, `tokens`, `unixSeconds`,
/// `abandoned`, `value`, `error` (standard error; 0: not known), `questions`; `stride`.
std::string CurveJson(const LossCurve& curve, const std::vector<EvaluationView>& evaluations);

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_LOSS_CURVE_H_
