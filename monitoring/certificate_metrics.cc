#include "monitoring/certificate_metrics.h"

namespace atl {

CertificateMetrics::CertificateMetrics(MetricsRegistry* registry)
    : not_after_(
          registry->AddGauge("atoll_tls_certificate_not_after_seconds",
                             "Time when this program's certificate expires, Unix time; only with TLS.")),
      files_unusable_(registry->AddGauge(
          "atoll_tls_files_unusable",
          "1 if the current certificate files cannot be loaded; the previous ones stay in use.")) {}

void CertificateMetrics::Set(WallTime not_after, bool files_usable) {
  not_after_.Set(std::chrono::duration<double>(not_after.time_since_epoch()).count());
  files_unusable_.Set(files_usable ? 0 : 1);
}

}  // namespace atl
