#include "client/sync/state_file.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr size_t kHeaderBytes = 9;   // magic, kind
constexpr size_t kTrailerBytes = 6;  // crc32c, mark, its complement
constexpr size_t kMarkBytes = 2;
constexpr size_t kGatherBytes = size_t{1} << 16;

std::array<std::byte, kMarkBytes> MarkBytes(uint8_t mark) {
  return {static_cast<std::byte>(mark), static_cast<std::byte>(~mark)};
}

absl::Status Damaged(const std::string& path, std::string_view what) {
  return absl::DataLossError(absl::StrFormat("%s is damaged: %s", path, std::string(what)));
}

}  // namespace

absl::StatusOr<StateFileWriter> StateFileWriter::Create(const std::string& path, StateFileKind kind) {
  std::string temporary = path + ".tmp";
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(temporary, OpenMode::kTruncate));
  StateFileWriter writer(std::move(file), path, std::move(temporary));
  writer.Put(std::as_bytes(std::span(kStateMagic)));
  writer.Number(static_cast<uint8_t>(kind));
  return writer;
}

StateFileWriter::~StateFileWriter() {
  // A file that stays behind is replaced by the next one of its name.
  if (!temporary_.empty()) static_cast<void>(RemoveFile(temporary_));
}

void StateFileWriter::Put(std::span<const std::byte> bytes) {
  if (!status_.ok()) return;
  crc_ = Crc32c(bytes, crc_);
  if (gathered_.size() + bytes.size() > kGatherBytes) Flush();
  if (bytes.size() > kGatherBytes) return Write(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
}

void StateFileWriter::Write(std::span<const std::byte> bytes) {
  if (!status_.ok()) return;
  status_ = file_.WriteAt(written_, bytes);
  written_ += bytes.size();
}

void StateFileWriter::Flush() {
  if (gathered_.empty()) return;
  Write(gathered_);
  gathered_.clear();
}

void StateFileWriter::Text(std::string_view text) {
  Number(static_cast<uint32_t>(text.size()));
  Put(std::as_bytes(std::span(text)));
}

absl::Status StateFileWriter::Commit() {
  Number(uint32_t{crc_});
  Put(MarkBytes(0));
  Flush();
  if (status_.ok()) status_ = file_.Sync();
  if (status_.ok()) status_ = file_.Close();
  if (status_.ok()) status_ = RenameFile(temporary_, path_);
  if (!status_.ok()) return status_;
  temporary_.clear();
  const size_t slash = path_.rfind('/');
  return FsyncDir(slash == std::string::npos ? "." : path_.substr(0, slash));
}

absl::StatusOr<StateFileReader> StateFileReader::Open(const std::string& path, StateFileKind kind) {
  if (!FileExists(path)) return absl::NotFoundError(absl::StrFormat("%s is not there", path));
  ATOLL_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, AccessPattern::kSequential));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < kHeaderBytes + kTrailerBytes) return Damaged(path, "it is too short");
  if (std::memcmp(bytes.data(), kStateMagic.data(), kStateMagic.size()) != 0 ||
      bytes[kStateMagic.size()] != static_cast<std::byte>(kind)) {
    return Damaged(path, "it is not the state of a worker, or of another format");
  }
  const auto body = bytes.first(bytes.size() - kTrailerBytes);
  uint32_t crc = 0;
  std::memcpy(&crc, body.data() + body.size(), sizeof(crc));
  if (crc != Crc32c(body)) return Damaged(path, "its crc32c differs");
  const auto mark = static_cast<uint8_t>(bytes[bytes.size() - kMarkBytes]);
  const bool whole = MarkBytes(mark)[1] == bytes.back();
  return StateFileReader(std::move(file), body.subspan(kHeaderBytes), whole ? mark : uint8_t{0});
}

void StateFileReader::Fail() {
  failed_ = true;
  rest_ = {};
}

void StateFileReader::Take(std::span<std::byte> out) {
  if (failed_ || out.size() > rest_.size()) return Fail();
  if (!out.empty()) std::memcpy(out.data(), rest_.data(), out.size());
  rest_ = rest_.subspan(out.size());
}

uint64_t StateFileReader::Count(size_t element_bytes) {
  const auto count = Number<uint64_t>();
  if (count <= rest_.size() / element_bytes) return count;
  Fail();
  return 0;
}

std::string StateFileReader::Text() {
  const auto size = Number<uint32_t>();
  if (size > rest_.size()) {
    Fail();
    return "";
  }
  std::string text(size, '\0');
  Take(std::as_writable_bytes(std::span(text)));
  return text;
}

absl::Status StateFileReader::Finish() const {
  if (failed_) return Damaged(file_.path(), "it ends within a field");
  return rest_.empty() ? absl::OkStatus() : Damaged(file_.path(), "it goes on after its last field");
}

absl::Status MarkStateFile(const std::string& path, uint8_t mark) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kOpenExisting));
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size < kHeaderBytes + kTrailerBytes) return Damaged(path, "it is too short");
  ATOLL_RETURN_IF_ERROR(file.WriteAt(size - kMarkBytes, MarkBytes(mark)));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

}  // namespace atl
