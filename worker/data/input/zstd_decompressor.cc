#include <zstd.h>

#include "absl/strings/str_cat.h"
#include "worker/data/input/decompressor.h"

namespace atl {
namespace {

class ZstdDecompressor final : public Decompressor {
 public:
  ZstdDecompressor() : stream_(ZSTD_createDStream()) {}
  ~ZstdDecompressor() override { ZSTD_freeDStream(stream_); }
  ZstdDecompressor(const ZstdDecompressor&) = delete;
  ZstdDecompressor& operator=(const ZstdDecompressor&) = delete;

  bool Begin(int max_window_log) {
    return stream_ != nullptr &&
           ZSTD_isError(ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, max_window_log)) == 0;
  }

  absl::Status Decompress(std::string_view& in, size_t max_bytes, std::string& out) override {
    // Without bytes the decoder would begin another frame.
    if (complete_ && in.empty()) return absl::OkStatus();
    const size_t before = out.size();
    out.resize(before + max_bytes);
    ZSTD_inBuffer source{in.data(), in.size(), 0};
    ZSTD_outBuffer target{out.data() + before, max_bytes, 0};
    const size_t code = ZSTD_decompressStream(stream_, &target, &source);
    out.resize(before + target.pos);
    in.remove_prefix(source.pos);
    if (ZSTD_isError(code) != 0) {
      return absl::DataLossError(absl::StrCat("damaged zstd data: ", ZSTD_getErrorName(code)));
    }
    complete_ = code == 0;
    return absl::OkStatus();
  }

  absl::Status Finish() const override {
    if (complete_) return absl::OkStatus();
    return absl::DataLossError("the zstd data is cut short");
  }

 private:
  ZSTD_DStream* const stream_;
  bool complete_ = false;  // at the end of a frame
};

}  // namespace

absl::StatusOr<std::unique_ptr<Decompressor>> MakeZstdDecompressor(int max_window_log) {
  auto made = std::make_unique<ZstdDecompressor>();
  if (!made->Begin(max_window_log))
    return absl::ResourceExhaustedError("not enough memory to decompress zstd");
  return made;
}

}  // namespace atl
