#include "storage/memory_upload.h"

#include "common/status.h"
#include "storage/upload_checks.h"

namespace atl {

MemoryUpload::~MemoryUpload() {
  MutexLock lock(&disk_->mutex);
  disk_->uploading.erase(key_);
  if (accepted_) return;
  if (bytes_.empty() || !hooks_.resumable()) {
    disk_->payloads.erase(key_);
  } else {
    disk_->payloads[key_] = std::make_shared<const std::string>(std::move(bytes_));
  }
}

absl::Status MemoryUpload::Append(std::span<const std::byte> data) {
  if (accepted_) return UploadIsOver(key_);
  ATOLL_RETURN_IF_ERROR(CheckAppend(key_, payload_bytes_, bytes_.size(), data.size()));
  bytes_.append(reinterpret_cast<const char*>(data.data()), data.size());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Payload>> MemoryUpload::View() {
  return std::make_unique<MemoryPayload>(std::make_shared<const std::string>(bytes_));
}

absl::Status MemoryUpload::Accept(const Contribution& contribution) {
  if (accepted_) return UploadIsOver(key_);
  ATOLL_RETURN_IF_ERROR(CheckComplete(key_, payload_bytes_, bytes_.size()));
  MutexLock lock(&disk_->mutex);
  ATOLL_RETURN_IF_ERROR(hooks_.accept(contribution));
  disk_->payloads[key_] = std::make_shared<const std::string>(bytes_);
  accepted_ = true;
  return absl::OkStatus();
}

}  // namespace atl
