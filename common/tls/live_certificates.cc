#include "common/tls/live_certificates.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kLargestFile = 1 << 20;

absl::Status In(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrFormat("%s: %s", file, std::string(status.message())));
}

absl::Status CheckTime(const std::string& file, const CertificateSummary& facts, WallTime now) {
  if (now >= facts.not_after) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: the certificate expired on %s; replace the file, which is reloaded without a restart", file,
        UtcMinute(facts.not_after)));
  }
  if (now < facts.not_before) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the certificate is not valid before %s; check this machine's clock", file,
                        UtcMinute(facts.not_before)));
  }
  return absl::OkStatus();
}

absl::Status CheckUseOf(const std::string& file, const std::string& pem, CertificateUse use) {
  const absl::Status status = CheckUse(pem, use);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: %s; %s", file, std::string(status.message()),
      use == CertificateUse::kServer
          ? "give the coordinator's own with --tls-cert and --tls-key (scripts/dev-certs.sh FOLDER "
            "--coordinator makes one)"
          : "give this worker's or operator's own with --tls-cert and --tls-key (scripts/dev-certs.sh FOLDER "
            "--worker NAME or --admin NAME makes one)"));
}

absl::StatusOr<std::string> ReadRoots(const std::string& file) {
  if (file.empty()) return std::string();
  ATOLL_ASSIGN_OR_RETURN(const std::string pem, ReadFile(file, kLargestFile));
  ATOLL_RETURN_IF_ERROR(In(file, CountCertificates(pem).status()));
  return pem;
}

std::string PathOf(const FileDescriptor& fd) {
  return fd.valid() ? absl::StrCat("/proc/self/fd/", fd.get()) : "";
}

/// Creates a file in memory, or replaces it under the same descriptor. Anyone who opens its path gets either
/// the old or the new file.
absl::Status PutBehind(FileDescriptor& shown, const std::string& contents, int64_t generation) {
  FileDescriptor next(::memfd_create("atoll-certificates", MFD_CLOEXEC));
  if (!next.valid()) return ErrnoToStatus(errno, "memfd_create for certificates");
  for (size_t at = 0; at < contents.size();) {
    const ssize_t n = ::write(next.get(), contents.data() + at, contents.size() - at);
    if (n < 0) return ErrnoToStatus(errno, "write certificates to memory");
    at += static_cast<size_t>(n);
  }
  // gRPC compares these times, in seconds, to detect a replacement between its reads of key and certificate.
  const timespec stamp = {.tv_sec = generation, .tv_nsec = 0};
  const timespec stamps[2] = {stamp, stamp};
  if (::futimens(next.get(), stamps) != 0) return ErrnoToStatus(errno, "futimens for certificates");
  if (!shown.valid()) {
    shown = std::move(next);
    return absl::OkStatus();
  }
  if (::dup3(next.get(), shown.get(), O_CLOEXEC) < 0) return ErrnoToStatus(errno, "dup3 for certificates");
  return absl::OkStatus();
}

bool Same(const CertificateSet& a, const CertificateSet& b) {
  return a.certificate == b.certificate && a.key == b.key && a.roots == b.roots && a.admin_ca == b.admin_ca;
}

}  // namespace

absl::StatusOr<CertificateSet> ReadCertificateFiles(const CertificateFiles& files, CertificateUse use,
                                                    WallTime now) {
  CertificateSet set;
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError(
        "a certificate needs its key and the reverse: give both --tls-cert and --tls-key");
  }
  if (!files.certificate.empty()) {
    ATOLL_ASSIGN_OR_RETURN(set.certificate, ReadFile(files.certificate, kLargestFile));
    ATOLL_ASSIGN_OR_RETURN(set.key, ReadFile(files.key, kLargestFile));
    auto facts = ReadCertificate(set.certificate);
    ATOLL_RETURN_IF_ERROR(In(files.certificate, facts.status()));
    set.facts = *std::move(facts);
    ATOLL_RETURN_IF_ERROR(In(files.key, CheckKeyPair(set.certificate, set.key)));
    ATOLL_RETURN_IF_ERROR(CheckUseOf(files.certificate, set.certificate, use));
    ATOLL_RETURN_IF_ERROR(CheckTime(files.certificate, set.facts, now));
  }
  ATOLL_ASSIGN_OR_RETURN(set.roots, ReadRoots(files.ca));
  ATOLL_ASSIGN_OR_RETURN(set.admin_ca, ReadRoots(files.admin_ca));
  if (!set.admin_ca.empty()) absl::StrAppend(&set.roots, "\n", set.admin_ca);
  return set;
}

absl::StatusOr<std::unique_ptr<LiveCertificates>> LiveCertificates::Load(LiveCertificateOptions options) {
  std::unique_ptr<LiveCertificates> live(new LiveCertificates(std::move(options)));
  LiveCertificates& l = *live;
  ATOLL_ASSIGN_OR_RETURN(CertificateSet first,
                         ReadCertificateFiles(l.options_.files, l.options_.use, l.options_.clock->WallNow()));
  ATOLL_RETURN_IF_ERROR(l.Show(first));
  {
    MutexLock lock(&l.mutex_);
    l.current_ = std::make_shared<const CertificateSet>(std::move(first));
  }
  l.looking_ = std::make_unique<PeriodicTask>("certificates", l.options_.period,
                                              [self = live.get()] { self->Look(); });
  return live;
}

LiveCertificates::~LiveCertificates() {
  if (looking_) looking_->Stop();
}

absl::Status LiveCertificates::Show(const CertificateSet& set) {
  MutexLock lock(&look_mutex_);
  ++generation_;
  if (!set.certificate.empty()) {
    ATOLL_RETURN_IF_ERROR(PutBehind(key_, set.key, generation_));
    ATOLL_RETURN_IF_ERROR(PutBehind(certificate_, set.certificate, generation_));
  }
  return set.roots.empty() ? absl::OkStatus() : PutBehind(roots_, set.roots, generation_);
}

void LiveCertificates::Look() {
  const std::shared_ptr<const CertificateSet> old = current();
  const absl::Status before = last_outcome();
  auto read = ReadCertificateFiles(options_.files, options_.use, options_.clock->WallNow());
  const bool changed = read.ok() && !Same(*read, *old);
  absl::Status outcome = read.status();
  if (changed) outcome = Show(*read);
  const bool in_force = changed && outcome.ok();
  {
    MutexLock lock(&mutex_);
    if (in_force) current_ = std::make_shared<const CertificateSet>(*std::move(read));
    last_outcome_ = outcome;
  }
  if (options_.on_change && (in_force || outcome != before)) options_.on_change(outcome, *current());
}

std::shared_ptr<const CertificateSet> LiveCertificates::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

absl::Status LiveCertificates::last_outcome() const {
  MutexLock lock(&mutex_);
  return last_outcome_;
}

std::string LiveCertificates::certificate_path() const { return PathOf(certificate_); }
std::string LiveCertificates::key_path() const { return PathOf(key_); }
std::string LiveCertificates::roots_path() const { return PathOf(roots_); }

}  // namespace atl
