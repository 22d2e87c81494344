#include "storage/rocksdb/file_upload.h"

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/upload_checks.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Payload>> MappedPayload::Open(const std::string& path,
                                                             uint64_t expected_bytes) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path, AccessPattern::kSequential);
  if (absl::IsNotFound(file.status()))
    return absl::DataLossError(absl::StrFormat("payload %s is missing", path));
  if (!file.ok()) return file.status();
  if (file->size() != expected_bytes) {
    return absl::DataLossError(
        absl::StrFormat("payload %s has %d bytes instead of %d", path, file->size(), expected_bytes));
  }
  return std::unique_ptr<Payload>(new MappedPayload(*std::move(file), path));
}

absl::StatusOr<std::unique_ptr<Upload>> FileUpload::Start(std::shared_ptr<ContributionFolder> folder,
                                                          const ContributionKey& key, uint64_t payload_bytes,
                                                          Hooks hooks) {
  ATOLL_RETURN_IF_ERROR(folder->Claim(key));
  const absl::Status admitted = hooks.admit();
  if (!admitted.ok()) {
    folder->ReleaseAccepted(key);
    return admitted;
  }
  // From here on the destructor gives the claim back.
  std::unique_ptr<FileUpload> upload(new FileUpload(std::move(folder), key, payload_bytes, std::move(hooks)));
  ATOLL_RETURN_IF_ERROR(upload->OpenFile());
  return upload;
}

FileUpload::~FileUpload() {
  if (!accepted_) folder_->Release(key_, /*keep=*/received_ > 0);
}

absl::Status FileUpload::OpenFile() {
  const std::string path = folder_->PathOf(key_);
  ATOLL_ASSIGN_OR_RETURN(file_, DurableFile::Open(path, OpenMode::kCreateOrOpen));
  ATOLL_ASSIGN_OR_RETURN(received_, file_.Size());
  if (received_ > payload_bytes_) {
    // Left by an upload of another size: nothing of it can be trusted.
    Discard();
    ATOLL_ASSIGN_OR_RETURN(file_, DurableFile::Open(path, OpenMode::kCreateNew));
  }
  return file_.Reserve(payload_bytes_);
}

absl::Status FileUpload::EnsureOpen() {
  if (accepted_) return UploadIsOver(key_);
  return file_.is_open() ? absl::OkStatus() : OpenFile();
}

absl::Status FileUpload::Append(std::span<const std::byte> data) {
  ATOLL_RETURN_IF_ERROR(EnsureOpen());
  ATOLL_RETURN_IF_ERROR(CheckAppend(key_, payload_bytes_, received_, data.size()));
  const absl::Status written = file_.WriteAt(received_, data);
  FaultPoint("stage.written");
  if (written.ok()) {
    received_ += data.size();
    return written;
  }
  // Part of it may be there; the length of the file says what was received.
  if (!file_.Truncate(received_).ok()) Discard();
  return written;
}

absl::StatusOr<std::unique_ptr<Payload>> FileUpload::View() {
  ATOLL_RETURN_IF_ERROR(EnsureOpen());
  return MappedPayload::Open(folder_->PathOf(key_), received_);
}

absl::Status FileUpload::MakeDurable() {
  const absl::Status synced = file_.Sync();
  if (!synced.ok()) {
    // The kernel drops pages that it could not write and calls the file clean: a second sync would lie.
    Discard();
    return synced;
  }
  return FsyncDir(folder_->path());
}

absl::Status FileUpload::Accept(const Contribution& contribution) {
  ATOLL_RETURN_IF_ERROR(EnsureOpen());
  ATOLL_RETURN_IF_ERROR(CheckComplete(key_, payload_bytes_, received_));
  ATOLL_RETURN_IF_ERROR(hooks_.check(contribution));
  ATOLL_RETURN_IF_ERROR(MakeDurable());
  FaultPoint("stage.synced");
  ATOLL_RETURN_IF_ERROR(hooks_.record(contribution));
  FaultPoint("ack.recorded");
  accepted_ = true;
  folder_->ReleaseAccepted(key_);
  return absl::OkStatus();
}

void FileUpload::Discard() {
  if (accepted_) return;
  file_ = DurableFile();
  RemoveFile(folder_->PathOf(key_)).IgnoreError();
  received_ = 0;
}

}  // namespace atl
