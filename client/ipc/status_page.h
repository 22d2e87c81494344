#ifndef ATOLL_CLIENT_IPC_STATUS_PAGE_H_
#define ATOLL_CLIENT_IPC_STATUS_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atl::ipc {

inline constexpr size_t kStatusPageBytes = size_t{64} << 10;

/// A short text in shared memory: one thread of one process replaces it, any thread of the other reads the
/// newest without waiting. A sequence number that is odd while the text changes tells a reader to read again.
class StatusPage {
 public:
  /// `memory`: kStatusPageBytes, aligned to 8, zero at first. Outlives this object.
  explicit StatusPage(std::span<std::byte> memory);

  /// A text that does not fit is not shown. By one thread at a time.
  void Write(std::string_view text);
  /// Empty before the first Write. None: it changed all the while, or the writer died within a Write.
  std::optional<std::string> Read() const;

 private:
  std::span<std::atomic<uint64_t>> words_;  // sequence, bytes, text
};

}  // namespace atl::ipc

#endif  // ATOLL_CLIENT_IPC_STATUS_PAGE_H_
