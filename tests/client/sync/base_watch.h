#ifndef ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_
#define ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "client/sync/host_fragment_encoder.h"
#include "client/sync/replica.h"

namespace atl {

/// Encodes on the host, and holds the caller to its promise: the parameters at BeginSteps are the base of
/// the next Measure.
class BaseWatch final : public FragmentEncoder {
 public:
  BaseWatch(const EncoderOptions& options, Replica* replica) : encoder_(options), replica_(*replica) {}

  void BeginSteps(const FragmentLayout& fragment, bool from_base) override {
    written_.reset();
    if (!from_base) return;
    written_.emplace(fragment.elements);
    EXPECT_TRUE(replica_.ReadFragment(fragment, *written_).ok());
  }
  absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                       std::span<float> room) override {
    if (written_.has_value()) ExpectEqual(fragment, base);
    written_.reset();
    return encoder_.Measure(fragment, base, replica, room);
  }
  absl::Status Encode(std::span<float> room, std::span<std::byte> payload) override {
    return encoder_.Encode(room, payload);
  }
  void GiveBack(std::span<const std::byte> payload) override { encoder_.GiveBack(payload); }
  std::span<const float> residual() const override { return encoder_.residual(); }
  absl::Status Restore(std::span<const float> residual) override { return encoder_.Restore(residual); }
  void Reset() override { encoder_.Reset(); }

 private:
  /// Between the tensors a base may have anything.
  void ExpectEqual(const FragmentLayout& fragment, std::span<const float> base) const {
    for (const TensorSlot& slot : fragment.slots) {
      for (uint64_t i = slot.offset; i < slot.offset + slot.elements; ++i) {
        ASSERT_EQ((*written_)[i], base[i]) << "fragment " << fragment.id.value() << ", element " << i;
      }
    }
  }

  HostFragmentEncoder encoder_;
  Replica& replica_;
  std::optional<std::vector<float>> written_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_
