#ifndef ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_
#define ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_

#include <algorithm>
#include <span>
#include <vector>

#include "client/sync/host_fragment_encoder.h"
#include "client/sync/replica.h"
#include "common/status.h"

namespace atl {

/// Encodes on the host, and holds the caller to its promise: the parameters at BeginSteps are the base of the
/// next Measure, which else fails with Internal.
class BaseWatch final : public FragmentEncoder {
 public:
  BaseWatch(const EncoderOptions& options, Replica* replica) : encoder_(options), replica_(*replica) {}

  void BeginSteps(const FragmentLayout& fragment, bool from_base) override {
    watches_ = from_base;
    if (!from_base) return;
    written_.assign(fragment.elements, 0);
    read_ = replica_.ReadFragment(fragment, written_);
  }
  absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                       std::span<float> room) override {
    ATOLL_RETURN_IF_ERROR(read_);
    if (watches_ && !Equal(fragment, base))
      return absl::InternalError("the parameters were not the base when the steps began");
    watches_ = false;
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
  bool Equal(const FragmentLayout& fragment, std::span<const float> base) const {
    return std::ranges::all_of(fragment.slots, [&](const TensorSlot& slot) {
      return std::ranges::equal(base.subspan(slot.offset, slot.elements),
                                std::span(written_).subspan(slot.offset, slot.elements));
    });
  }

  HostFragmentEncoder encoder_;
  Replica& replica_;
  bool watches_ = false;
  std::vector<float> written_;  // what the parameters were, if it watches
  absl::Status read_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_BASE_WATCH_H_
