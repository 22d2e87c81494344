#include "worker/cuda/device_encoder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

constexpr size_t kFirstBadBytes = sizeof(unsigned long long);

size_t ValueBytes(const DeviceEncoder::Options& options) { return options.elements * sizeof(float); }
size_t PayloadBytes(const DeviceEncoder::Options& options) {
  return CodecFor(options.codec).EncodedSize(options.elements);
}
size_t SquareBytes(const DeviceEncoder::Options& options) {
  return (options.elements + kChunkAlignment - 1) / kChunkAlignment * sizeof(double);
}

}  // namespace

DeviceEncoder::Memory DeviceEncoder::MemoryOf(const Options& options) {
  return {.device = 3 * ValueBytes(options) + PayloadBytes(options) + SquareBytes(options) + kFirstBadBytes,
          .pinned = 3 * ValueBytes(options) + PayloadBytes(options) + kFirstBadBytes};
}

DeviceEncoder::DeviceEncoder(const Options& options, DeviceQueue& queue)
    : options_(options), codec_(CodecFor(options.codec)), queue_(queue) {}

DeviceEncoder::~DeviceEncoder() {
  if (under_way_) static_cast<void>(queue_.Wait());
}

absl::StatusOr<std::unique_ptr<DeviceEncoder>> DeviceEncoder::Create(const Options& options,
                                                                     DeviceQueue& queue) {
  if (options.codec == CodecKind::kInt8Quantile) {
    return absl::UnimplementedError("the codec int8_quantile has no kernels; encode on the processor");
  }
  std::unique_ptr<DeviceEncoder> encoder(new DeviceEncoder(options, queue));
  ATOLL_RETURN_IF_ERROR(encoder->Allocate());
  ATOLL_RETURN_IF_ERROR(encoder->Reset());
  return encoder;
}

absl::Status DeviceEncoder::Allocate() {
  for (const auto& [block, bytes] :
       {std::pair(&base_, ValueBytes(options_)), std::pair(&residual_, ValueBytes(options_)),
        std::pair(&next_, ValueBytes(options_)), std::pair(&payload_, PayloadBytes(options_)),
        std::pair(&squares_, SquareBytes(options_)), std::pair(&first_bad_, kFirstBadBytes)}) {
    auto allocated = queue_.Allocate(bytes);
    if (!allocated.ok()) return allocated.status();
    *block = *std::move(allocated);
  }
  for (const auto& [block, bytes] :
       {std::pair(&base_in_, ValueBytes(options_)), std::pair(&payload_out_, PayloadBytes(options_)),
        std::pair(&next_out_, ValueBytes(options_)), std::pair(&first_bad_out_, kFirstBadBytes),
        std::pair(&kept_, ValueBytes(options_))}) {
    auto allocated = queue_.AllocatePinned(bytes);
    if (!allocated.ok()) return allocated.status();
    *block = *std::move(allocated);
  }
  return absl::OkStatus();
}

absl::Status DeviceEncoder::TakeBase(const float* values) {
  has_base_ = false;
  ATOLL_RETURN_IF_ERROR(
      queue_.CopyOnDevice(reinterpret_cast<const std::byte*>(values), base_.get(), ValueBytes(options_)));
  has_base_ = true;
  return absl::OkStatus();
}

absl::Status DeviceEncoder::Begin(std::span<const float> base, const float* local) {
  if (base.size() != options_.elements) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the base has %d values, the fragment has %d", base.size(), options_.elements));
  }
  if (under_way_) ATOLL_RETURN_IF_ERROR(queue_.Wait());  // it reads base_in_
  if (!std::exchange(has_base_, false)) {
    std::memcpy(base_in_.get(), base.data(), base.size_bytes());
    ATOLL_RETURN_IF_ERROR(queue_.CopyIn(base_in_.get(), base_.get(), ValueBytes(options_)));
  }
  under_way_ = true;
  const DevicePush push = {.base = Floats(base_),
                           .local = local,
                           .residual = Floats(residual_),
                           .next = Floats(next_),
                           .payload = reinterpret_cast<uint8_t*>(payload_.get()),
                           .squares = reinterpret_cast<double*>(squares_.get()),
                           .first_bad = reinterpret_cast<unsigned long long*>(first_bad_.get()),
                           .elements = options_.elements,
                           .beta = static_cast<float>(options_.beta),
                           .form = options_.form};
  ATOLL_RETURN_IF_ERROR(queue_.Push(options_.codec, push));
  for (const ElementRange& range : options_.averaged) {
    ATOLL_RETURN_IF_ERROR(
        queue_.Zero(next_.get() + range.begin * sizeof(float), (range.end - range.begin) * sizeof(float)));
  }
  return CopyOut();
}

absl::Status DeviceEncoder::CopyOut() {
  ATOLL_RETURN_IF_ERROR(queue_.CopyOut(first_bad_.get(), first_bad_out_.get(), kFirstBadBytes));
  ATOLL_RETURN_IF_ERROR(queue_.CopyOut(payload_.get(), payload_out_.get(), PayloadBytes(options_)));
  return queue_.CopyOut(next_.get(), next_out_.get(), ValueBytes(options_));
}

absl::Status DeviceEncoder::End(std::span<std::byte> payload) {
  if (!under_way_) return absl::FailedPreconditionError("no push of this fragment is under way");
  under_way_ = false;
  ATOLL_RETURN_IF_ERROR(queue_.Wait());
  if (payload.size() != PayloadBytes(options_)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("room for %d bytes of payload, it has %d", payload.size(), PayloadBytes(options_)));
  }
  unsigned long long first_bad = 0;
  std::memcpy(&first_bad, first_bad_out_.get(), kFirstBadBytes);
  if (first_bad < options_.elements) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "element %d of the pseudo-gradient is not finite (residual %g); drop the round and pull", first_bad,
        residual()[first_bad]));
  }
  std::memcpy(payload.data(), payload_out_.get(), payload.size());
  std::swap(residual_, next_);
  std::swap(kept_, next_out_);
  return absl::OkStatus();
}

absl::Status DeviceEncoder::GiveBack(std::span<const std::byte> payload) {
  ATOLL_RETURN_IF_ERROR(codec_.Validate(payload, options_.elements));
  codec_.AccumulateRange(payload, options_.elements, 0, 1.0f, {Floats(kept_), options_.elements});
  ClearAveraged();
  return Upload();
}

absl::Status DeviceEncoder::Restore(std::span<const float> residual) {
  if (residual.size() != options_.elements) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the stored residual has %d values, the fragment has %d", residual.size(), options_.elements));
  }
  if (const auto bad = FirstNonFinite(residual)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the stored residual's element %d is not finite (%g)", *bad, residual[*bad]));
  }
  std::copy(residual.begin(), residual.end(), Floats(kept_));
  ClearAveraged();
  return Upload();
}

absl::Status DeviceEncoder::Reset() {
  std::fill_n(Floats(kept_), options_.elements, 0.0f);
  return Upload();
}

absl::Status DeviceEncoder::Upload() {
  ATOLL_RETURN_IF_ERROR(queue_.CopyIn(kept_.get(), residual_.get(), ValueBytes(options_)));
  // `kept_` may change from now on.
  return queue_.Wait();
}

void DeviceEncoder::ClearAveraged() {
  for (const ElementRange& range : options_.averaged) {
    std::fill(Floats(kept_) + range.begin, Floats(kept_) + range.end, 0.0f);
  }
}

}  // namespace atl
