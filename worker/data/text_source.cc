#include "worker/data/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {

struct TextSource::Stream {
  explicit Stream(gzFile opened) : file(opened) {}
  ~Stream() { gzclose(file); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  gzFile file;
};

absl::StatusOr<TextSource> TextSource::Open(const std::string& path) {
  const int fd = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("opening text file ", path));
  struct stat status {};
  const bool known = fstat(fd, &status) == 0;
  if (known && S_ISDIR(status.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat("text file ", path, ": is a folder; name the files in it"));
  }
  if (path != "-" && known && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
    close(fd);
    return absl::FailedPreconditionError(absl::StrCat("text file ", path,
                                                      ": is a device, which may never end; "
                                                      "name a file or a pipe"));
  }
  gzFile file = gzdopen(fd, "rb");
  if (file == nullptr) {
    close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("opening text file ", path, ": out of memory"));
  }
  gzbuffer(file, 1 << 18);
  const uint64_t size = known && S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  return TextSource(std::make_unique<Stream>(file), path, size);
}

TextSource::TextSource(std::unique_ptr<Stream> stream, std::string path, uint64_t size)
    : stream_(std::move(stream)), path_(std::move(path)), size_(size) {}
TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;

absl::Status TextSource::Read(size_t max_bytes, std::string& text) {
  text.resize(max_bytes);
  const int got = gzread(stream_->file, text.data(), static_cast<unsigned>(max_bytes));
  int code = Z_OK;
  const char* message = gzerror(stream_->file, &code);
  if (code == Z_ERRNO) return ErrnoToStatus(errno, absl::StrCat("reading text file ", path_));
  // A cut stream is reported as Z_BUF_ERROR beside the bytes that could still be read.
  if (got < 0 || code != Z_OK) {
    return absl::DataLossError(absl::StrCat("text file ", path_, ": damaged gzip data: ", message));
  }
  text.resize(static_cast<size_t>(got));
  text_bytes_ += static_cast<uint64_t>(got);
  return absl::OkStatus();
}

uint64_t TextSource::position() const {
  const auto offset = gzoffset(stream_->file);  // negative if the file has no positions, as a pipe
  return offset < 0 ? text_bytes_ : static_cast<uint64_t>(offset);
}

}  // namespace atl
