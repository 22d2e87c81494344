#ifndef ATOLL_CLI_TENSORBOARD_H_
#define ATOLL_CLI_TENSORBOARD_H_

#include <cstdint>
#include <string>
#include <string_view>

// TensorBoard's event file: records of an Event message each (protos/tensorboard/event.proto), framed as
// TFRecord (tensorflow/core/lib/io/record_writer.h):
//
//   record := length:u64 masked_crc32c(length):u32 data masked_crc32c(data):u32       little-endian
//   masked(crc) := rotate_right(crc, 15) + 0xa282ead8                                  as leveldb masks

namespace atl {

inline constexpr uint32_t kTfRecordMaskDelta = 0xa282ead8;

/// One framed record.
std::string TfRecord(std::string_view data);

/// The record that every file begins with.
std::string TensorBoardHeader(double wall_time_s);

/// One scalar.
std::string TensorBoardScalar(const std::string& tag, int64_t step, double wall_time_s, float value);

}  // namespace atl

#endif  // ATOLL_CLI_TENSORBOARD_H_
