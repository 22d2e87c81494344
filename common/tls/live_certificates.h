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
  std::string certificate;  // this side's, with those between it and its CA behind it
  std::string key;
  std::string ca;        // who signs the other side's
  std::string admin_ca;  // who signs operators'; trusted beside `ca`
};

/// What is in force.
struct CertificateSet {
  std::string certificate;  // PEM, as the next three
  std::string key;
  std::string roots;  // `ca` and `admin_ca`
  std::string admin_ca;
  CertificateSummary facts;  // of `certificate`, when there is one
};

struct LiveCertificateOptions {
  CertificateFiles files;
  CertificateUse use = CertificateUse::kServer;  // what `files.certificate` must allow
  const Clock* clock = nullptr;
  Duration period = Seconds(5);  // between looks at the files
  /// Other files are in force; or they cannot be used, why, and the old ones stay. Once for each change.
  std::function<void(const absl::Status& outcome, const CertificateSet& in_force)> on_change;
};

/// Certificates that follow their files: what fits together and is valid comes into force, what does not (a
/// key without its certificate yet, a damaged file) leaves the old one there. gRPC watches paths, and would
/// take whatever it finds in them, half of a change too; so it is given paths of our own, behind which a set
/// is replaced whole, in memory only. Thread-safe.
class LiveCertificates {
 public:
  /// InvalidArgument, NotFound, PermissionDenied: which file cannot be used, and why.
  static absl::StatusOr<std::unique_ptr<LiveCertificates>> Load(LiveCertificateOptions options);
  ~LiveCertificates();

  std::shared_ptr<const CertificateSet> current() const;
  /// OK, or why the files as they are now cannot be used.
  absl::Status last_outcome() const;

  /// Files that always hold what is in force; empty when there is none of the kind. Valid while this lives,
  /// in this process only.
  std::string certificate_path() const;
  std::string key_path() const;
  std::string roots_path() const;

  /// A look at the files now.
  void Look();

 private:
  explicit LiveCertificates(LiveCertificateOptions options) : options_(std::move(options)) {}
  absl::Status Show(const CertificateSet& set);

  const LiveCertificateOptions options_;
  // Constant after Load; what is behind their numbers is replaced.
  FileDescriptor certificate_;
  FileDescriptor key_;
  FileDescriptor roots_;

  Mutex look_mutex_;  // one look at a time
  int64_t generation_ ABSL_GUARDED_BY(look_mutex_) = 0;
  mutable Mutex mutex_;
  std::shared_ptr<const CertificateSet> current_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_outcome_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicTask> looking_;  // last: it uses everything above
};

/// What the files hold now, checked: the pair fits, is for this side, and has not expired at `now`.
absl::StatusOr<CertificateSet> ReadCertificateFiles(const CertificateFiles& files, CertificateUse use,
                                                    WallTime now);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_LIVE_CERTIFICATES_H_
