#ifndef ATOLL_STORAGE_ROCKSDB_FILE_UPLOAD_H_
#define ATOLL_STORAGE_ROCKSDB_FILE_UPLOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/durable_file.h"
#include "common/mapped_file.h"
#include "storage/rocksdb/contribution_folder.h"
#include "storage/run_store.h"

namespace atl {

class MappedPayload final : public Payload {
 public:
  static absl::StatusOr<std::unique_ptr<Payload>> Open(const std::string& path, uint64_t expected_bytes);
  std::span<const std::byte> bytes() const override { return file_.bytes(); }
  std::string path() const override { return path_; }

 private:
  MappedPayload(MappedFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  const MappedFile file_;
  const std::string path_;
};

/// An upload into a file of the folder. The file is as long as what was received; a file is never shortened
/// below what a view may have mapped, but replaced.
class FileUpload final : public Upload {
 public:
  /// The store's part: `admit` once the key is claimed and before its file is touched (no other upload can
  /// then be accepted under it), `check` before any sync, `record` after the payload is durable.
  struct Hooks {
    std::function<absl::Status()> admit;
    std::function<absl::Status(const Contribution&)> check;
    std::function<absl::Status(const Contribution&)> record;
  };

  /// Claims the key, takes up what an earlier upload left, and reserves the rest on disk. Aborted,
  /// ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Upload>> Start(std::shared_ptr<ContributionFolder> folder,
                                                       const ContributionKey& key, uint64_t payload_bytes,
                                                       Hooks hooks);
  ~FileUpload() override;

  uint64_t received_bytes() const override { return received_; }
  absl::Status Append(std::span<const std::byte> data) override;
  absl::StatusOr<std::unique_ptr<Payload>> View() override;
  absl::Status Accept(const Contribution& contribution) override;
  void Discard() override;

 private:
  FileUpload(std::shared_ptr<ContributionFolder> folder, ContributionKey key, uint64_t payload_bytes,
             Hooks hooks)
      : folder_(std::move(folder)),
        key_(std::move(key)),
        payload_bytes_(payload_bytes),
        hooks_(std::move(hooks)) {}

  absl::Status OpenFile();
  absl::Status EnsureOpen();
  absl::Status MakeDurable();

  const std::shared_ptr<ContributionFolder> folder_;
  const ContributionKey key_;
  const uint64_t payload_bytes_;
  const Hooks hooks_;
  DurableFile file_;  // closed after Discard
  uint64_t received_ = 0;
  bool accepted_ = false;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_FILE_UPLOAD_H_
