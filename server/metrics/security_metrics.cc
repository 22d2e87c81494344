#include "server/metrics/security_metrics.h"

namespace atoll {
namespace {

constexpr char kRefused[] = "atoll_calls_refused_total";
constexpr char kRefusedHelp[] =
    "Calls refused because of who made them: nobody that is known, or somebody who may not.";

}  // namespace

SecurityMetrics::SecurityMetrics(MetricsRegistry* registry, bool insecure_bind)
    : unknown_(registry->AddCounter(kRefused, kRefusedHelp, {{"reason", "unauthenticated"}})),
      denied_(registry->AddCounter(kRefused, kRefusedHelp, {{"reason", "permission_denied"}})) {
  registry
      ->AddGauge("atoll_insecure_bind",
                 "1: other machines can reach a port of the run in plain text (--insecure-bind).")
      .Set(insecure_bind ? 1 : 0);
}

void SecurityMetrics::OnRefused(const absl::Status& refusal) {
  (absl::IsUnauthenticated(refusal) ? unknown_ : denied_).Increment();
}

}  // namespace atoll
