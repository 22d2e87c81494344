#ifndef ATOLL_STORAGE_MEMORY_UPLOAD_H_
#define ATOLL_STORAGE_MEMORY_UPLOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "storage/memory_disk.h"
#include "storage/run_store.h"

namespace atl {

/// A view of bytes that nobody changes.
class MemoryPayload final : public Payload {
 public:
  explicit MemoryPayload(MemoryDisk::Bytes bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override {
    return std::as_bytes(std::span(bytes_->data(), bytes_->size()));
  }

 private:
  const MemoryDisk::Bytes bytes_;
};

/// Collects bytes and leaves them on the disk when it ends. `accept` writes the record, `resumable` says,
/// under the disk's mutex, whether what is left may be resumed.
class MemoryUpload final : public Upload {
 public:
  struct Hooks {
    std::function<absl::Status(const Contribution&)> accept;
    std::function<bool()> resumable;
  };

  /// The key is in disk->uploading already.
  MemoryUpload(std::shared_ptr<MemoryDisk> disk, ContributionKey key, uint64_t payload_bytes,
               std::string bytes, Hooks hooks)
      : disk_(std::move(disk)),
        key_(std::move(key)),
        payload_bytes_(payload_bytes),
        hooks_(std::move(hooks)),
        bytes_(std::move(bytes)) {}
  ~MemoryUpload() override;

  uint64_t received_bytes() const override { return bytes_.size(); }
  absl::Status Append(std::span<const std::byte> data) override;
  absl::StatusOr<std::unique_ptr<Payload>> View() override;
  absl::Status Accept(const Contribution& contribution) override;
  void Discard() override { bytes_.clear(); }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const ContributionKey key_;
  const uint64_t payload_bytes_;
  const Hooks hooks_;
  std::string bytes_;
  bool accepted_ = false;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_MEMORY_UPLOAD_H_
