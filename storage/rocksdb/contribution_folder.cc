#include "storage/rocksdb/contribution_folder.h"

#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/run_checks.h"
#include "storage/upload_checks.h"

namespace atl {
namespace {

constexpr size_t kHex64 = 16;
constexpr size_t kHex32 = 8;

/// Takes `digits` hexadecimal digits and the dash behind them.
std::optional<uint64_t> TakeHex(std::string_view& text, size_t digits) {
  if (text.size() <= digits || text[digits] != '-') return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, 16);
  if (error != std::errc() || end != text.data() + digits) return std::nullopt;
  text.remove_prefix(digits + 1);
  return value;
}

}  // namespace

std::string ContributionFolder::FileName(const ContributionKey& key) {
  return absl::StrFormat("%016x-%08x-%016x-%08x-%s", key.epoch.value(), key.fragment.value(),
                         key.base.value(), key.sequence, key.worker);
}

std::optional<ContributionKey> ContributionFolder::ParseFileName(std::string_view name) {
  const std::string_view whole = name;
  const auto epoch = TakeHex(name, kHex64);
  const auto fragment = epoch ? TakeHex(name, kHex32) : std::nullopt;
  const auto base = fragment ? TakeHex(name, kHex64) : std::nullopt;
  const auto sequence = base ? TakeHex(name, kHex32) : std::nullopt;
  if (!sequence) return std::nullopt;
  ContributionKey key{.epoch = Epoch(*epoch),
                      .fragment = FragmentId(static_cast<uint32_t>(*fragment)),
                      .base = Version(*base),
                      .worker = std::string(name),
                      .sequence = static_cast<uint32_t>(*sequence)};
  if (!CheckWorkerName(key.worker).ok() || FileName(key) != whole) return std::nullopt;
  return key;
}

absl::StatusOr<std::shared_ptr<ContributionFolder>> ContributionFolder::Open(const std::string& path,
                                                                             const Judge& judge) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(path));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(path));
  std::shared_ptr<ContributionFolder> folder(new ContributionFolder(path));
  MutexLock lock(&folder->mutex_);
  for (const std::string& name : names) {
    const std::optional<ContributionKey> key = ParseFileName(name);
    if (!key) continue;
    const Disposition disposition = judge(*key);
    if (disposition == Disposition::kPartial) folder->partial_.emplace(*key, State::kIdle);
    if (disposition == Disposition::kGarbage) ATOLL_RETURN_IF_ERROR(RemoveFile(JoinPath(path, name)));
  }
  return folder;
}

std::string ContributionFolder::PathOf(const ContributionKey& key) const {
  return JoinPath(path_, FileName(key));
}

absl::Status ContributionFolder::Claim(const ContributionKey& key) {
  MutexLock lock(&mutex_);
  State& state = partial_.try_emplace(key, State::kIdle).first->second;
  if (state == State::kUploading) return UploadIsBusy(key);
  state = State::kUploading;
  return absl::OkStatus();
}

void ContributionFolder::Release(const ContributionKey& key, bool keep) {
  MutexLock lock(&mutex_);
  const auto head = heads_.find(key.fragment);
  if (keep && (head == heads_.end() || !LeftBehind(key.base, head->second))) {
    partial_[key] = State::kIdle;
    return;
  }
  // Unlinked before the claim ends, so that a new upload of the key cannot lose its file to this one.
  Unlink(key);
  partial_.erase(key);
}

void ContributionFolder::ReleaseAccepted(const ContributionKey& key) {
  MutexLock lock(&mutex_);
  partial_.erase(key);
}

uint64_t ContributionFolder::IdleBytes(const ContributionKey& key) const {
  MutexLock lock(&mutex_);
  const auto found = partial_.find(key);
  if (found == partial_.end() || found->second != State::kIdle) return 0;
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(PathOf(key), error);
  return error ? 0 : bytes;
}

void ContributionFolder::KeepLate(uint32_t versions) {
  MutexLock lock(&mutex_);
  late_ = versions;
}

bool ContributionFolder::LeftBehind(Version base, Version head) const {
  return base.value() + late_ < head.value();
}

void ContributionFolder::LeaveBehind(FragmentId fragment, Version head) {
  MutexLock lock(&mutex_);
  heads_[fragment] = head;
  std::erase_if(partial_, [&](const auto& entry) {
    const auto& [key, state] = entry;
    if (key.fragment != fragment || !LeftBehind(key.base, head) || state == State::kUploading) return false;
    Unlink(key);
    return true;
  });
}

void ContributionFolder::Remove(const ContributionKey& key) { Unlink(key); }

void ContributionFolder::Unlink(const ContributionKey& key) const {
  // A file that stays behind costs its bytes until the next start, which removes it.
  RemoveFile(PathOf(key)).IgnoreError();
}

}  // namespace atl
