#include <zlib.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "worker/data/input/decompressor.h"

namespace atl {
namespace {

class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() = default;
  ~GzipDecompressor() override { inflateEnd(&stream_); }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;

  // 16: with gzip's header and checksum.
  bool Begin() { return inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK; }

  absl::Status Decompress(std::string_view& in, size_t max_bytes, std::string& out) override {
    if (between_members_) {
      // Tapes and some archives fill the last block with zeros.
      while (padded_ ? !in.empty() : (!in.empty() && in[0] == '\0')) {
        if (in[0] != '\0') return Damaged("other bytes follow the zeros at its end");
        padded_ = true;
        in.remove_prefix(1);
      }
      if (in.empty()) return absl::OkStatus();
      if (inflateReset(&stream_) != Z_OK) return Damaged("the decoder does not start again");
      between_members_ = false;
    }
    const size_t before = out.size();
    out.resize(before + max_bytes);
    const size_t given = std::min<size_t>(in.size(), std::numeric_limits<uInt>::max());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_.avail_out = static_cast<uInt>(max_bytes);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    out.resize(before + (max_bytes - std::min<size_t>(max_bytes, stream_.avail_out)));
    in.remove_prefix(given - stream_.avail_in);
    between_members_ = code == Z_STREAM_END;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return absl::OkStatus();
    return Damaged(stream_.msg != nullptr ? stream_.msg : "unknown error");
  }

  absl::Status Finish() const override {
    if (between_members_) return absl::OkStatus();
    return absl::DataLossError("the gzip data is cut short");
  }

 private:
  static absl::Status Damaged(const char* why) {
    return absl::DataLossError(absl::StrCat("damaged gzip data: ", why));
  }

  z_stream stream_{};
  bool between_members_ = false;
  bool padded_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Decompressor>> MakeGzipDecompressor() {
  auto made = std::make_unique<GzipDecompressor>();
  if (!made->Begin()) return absl::ResourceExhaustedError("not enough memory to decompress gzip");
  return made;
}

}  // namespace atl
