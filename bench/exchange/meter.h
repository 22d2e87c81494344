#ifndef ATOLL_BENCH_EXCHANGE_METER_H_
#define ATOLL_BENCH_EXCHANGE_METER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"

namespace atl {

/// A port that passes everything on to another, and counts the bytes: what travels, HTTP/2's framing, headers
/// and pings included, TCP's and IP's not.
class Meter {
 public:
  static absl::StatusOr<std::unique_ptr<Meter>> Start(const std::string& target);
  ~Meter();

  const std::string& address() const { return address_; }
  uint64_t up() const { return up_; }
  uint64_t down() const { return down_; }

 private:
  Meter(FileDescriptor listener, std::string address, std::string target);
  void Accept();
  void Copy(int from, int to, std::atomic<uint64_t>* count);

  const FileDescriptor listener_;
  const std::string address_;
  const std::string target_;
  std::atomic<uint64_t> up_ = 0;
  std::atomic<uint64_t> down_ = 0;
  Mutex mutex_;
  std::vector<FileDescriptor> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> copiers_;  // by the acceptor, until it is joined
  std::thread acceptor_;
};

}  // namespace atl

#endif  // ATOLL_BENCH_EXCHANGE_METER_H_
