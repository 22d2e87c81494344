#include "storage/rocksdb/restore_note.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "storage/checkpoint_manifest.h"

namespace atl {
namespace {

/// Removes the file in the end.
struct Note {
  explicit Note(std::string at) : path(std::move(at)) {}
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;
  ~Note() { RemoveFile(path).IgnoreError(); }

  const std::string path;
};

}  // namespace

std::shared_ptr<const void> WriteRestoreNote(const std::string& path, const std::string& checkpoint,
                                             Epoch epoch) {
  const absl::Status written = WriteFileAtomically(path, absl::StrCat(epoch.value(), "\n", checkpoint, "\n"));
  if (!written.ok()) return nullptr;
  return std::make_shared<const Note>(path);
}

std::optional<InterruptedRestore> ReadRestoreNote(const std::string& path, Epoch epoch) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const size_t line = text->find('\n');
  uint64_t before = 0;
  if (line == std::string::npos || !absl::SimpleAtoi(text->substr(0, line), &before)) return std::nullopt;
  std::string name = text->substr(line + 1);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  if (!CheckCheckpointName(name).ok()) return std::nullopt;
  return InterruptedRestore{.checkpoint = std::move(name), .done = Epoch(before) != epoch};
}

}  // namespace atl
