#ifndef ATOLL_COMMON_TLS_LIVE_CERTIFICATES_H_
#define ATOLL_COMMON_TLS_LIVE_CERTIFICATES_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "common/periodic_task.h"
#include "common/tls/certificate.h"

namespace atl {

/// PEM files; empty: none.
struct CertificateFiles {
  std::string certificate;  // of this side, followed by its intermediates
  std::string key;
  std::string ca;        // CAs that sign the other side's certificates
  std::string admin_ca;  // CAs that sign operators' certificates; trusted in addition to `ca`
};

/// The certificates in use.
struct CertificateSet {
  std::string certificate;  // PEM, as the next three
  std::string key;
  std::string roots;  // `ca` and `admin_ca`
  std::string admin_ca;
  CertificateSummary facts;  // of `certificate`, when there is one
};

struct LiveCertificateOptions {
  CertificateFiles files;
  CertificateUse use = CertificateUse::kServer;  // the use that `files.certificate` must allow
  const Clock* clock = nullptr;
  Duration period = Seconds(5);  // between checks of the files
  /// Called once for each change: new files are in use, or they are unusable (with the reason) and the old
  /// ones stay in use.
  std::function<void(const absl::Status& outcome, const CertificateSet& in_force)> on_change;
};

/// Reloads certificates from their files. A valid, matching set replaces the old one; otherwise (a key
/// without its new certificate, a damaged file) the old set stays in use. gRPC watches paths and would use
/// whatever it finds there, even half of a change, so it gets our own in-memory paths, behind which a set is
/// replaced as a whole. Thread-safe.
class LiveCertificates {
 public:
  /// InvalidArgument, NotFound, PermissionDenied: which file cannot be used, and why.
  static absl::StatusOr<std::unique_ptr<LiveCertificates>> Load(LiveCertificateOptions options);
  ~LiveCertificates();

  std::shared_ptr<const CertificateSet> current() const;
  /// OK, or the reason why the current files are unusable.
  absl::Status last_outcome() const;

  /// Paths of files that always hold the set in use; empty for absent files. Valid while this object lives,
  /// only in this process.
  std::string certificate_path() const;
  std::string key_path() const;
  std::string roots_path() const;

  /// Checks the files now.
  void Look();

 private:
  explicit LiveCertificates(LiveCertificateOptions options) : options_(std::move(options)) {}
  absl::Status Show(const CertificateSet& set);

  const LiveCertificateOptions options_;
  // Constant after Load; what is behind their numbers is replaced.
  FileDescriptor certificate_;
  FileDescriptor key_;
  FileDescriptor roots_;

  Mutex look_mutex_;  // one check at a time
  int64_t generation_ ABSL_GUARDED_BY(look_mutex_) = 0;
  mutable Mutex mutex_;
  std::shared_ptr<const CertificateSet> current_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_outcome_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicTask> looking_;  // last: it uses everything above
};

/// Loads the files and checks that certificate and key match, allow this side, and have not expired at `now`.
absl::StatusOr<CertificateSet> ReadCertificateFiles(const CertificateFiles& files, CertificateUse use,
                                                    WallTime now);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_LIVE_CERTIFICATES_H_
