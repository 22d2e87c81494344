#include "tests/worker/cuda/executor_queue.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "worker/cuda/host_executor.h"
#include "worker/cuda/kernels/all.h"

namespace atl::device {
namespace {

DeviceBlock BlockOf(size_t bytes) {
  constexpr size_t kAlignment = 256;
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  std::memset(data, 0x5a, whole);
  return DeviceBlock(data, [](std::byte* at) { std::free(at); });
}

template <Feedback kFeedback>
absl::Status Run(CodecKind codec, const DevicePush& push, uint64_t seed) {
  HostExecutor executor({.seed = seed});
  const uint64_t chunks = (push.elements + kChunk - 1) / kChunk;
  PushArguments arguments;
  arguments.base = executor.Global("base", std::span(push.base, push.elements));
  arguments.local = executor.Global("local", std::span(push.local, push.elements));
  arguments.residual = executor.Global("residual", std::span(push.residual, push.elements));
  arguments.next = executor.Global("next", std::span(push.next, push.elements), Content::kUninitialised);
  const uint64_t bytes = CodecFor(codec).EncodedSize(push.elements);
  arguments.payload = executor.Global("payload", std::span(push.payload, bytes), Content::kUninitialised);
  arguments.squares = executor.Global("squares", std::span(push.squares, chunks), Content::kUninitialised);
  *push.first_bad = push.elements;
  arguments.first_bad = executor.Global("first_bad", std::span(push.first_bad, 1));
  arguments.elements = push.elements;
  arguments.beta = push.beta;
  arguments.rest = 1.0f - push.beta;
  arguments.kept = push.form == ErrorFeedbackForm::kCarry ? push.beta : 1.0f;
  absl::Status status;
  VisitKernels(codec, [&]<typename Kernels>() {
    status = executor.Launch<typename Kernels::template Encode<kFeedback>>(static_cast<uint32_t>(chunks), 128,
                                                                           arguments);
  });
  return status;
}

}  // namespace

absl::StatusOr<DeviceBlock> ExecutorQueue::Allocate(size_t bytes) {
  if (bytes > room_)
    return absl::ResourceExhaustedError(absl::StrFormat("the device has no room for %d bytes", bytes));
  room_ -= bytes;
  device_bytes_ += bytes;
  return BlockOf(bytes);
}

absl::StatusOr<DeviceBlock> ExecutorQueue::AllocatePinned(size_t bytes) {
  pinned_bytes_ += bytes;
  return BlockOf(bytes);
}

absl::Status ExecutorQueue::Do(std::function<absl::Status()> work) {
  if (when_ == When::kAtOnce) return work();
  queued_.push_back(std::move(work));
  return absl::OkStatus();
}

absl::Status ExecutorQueue::CopyIn(const std::byte* pinned, std::byte* device, size_t bytes) {
  return Do([=] {
    std::memcpy(device, pinned, bytes);
    return absl::OkStatus();
  });
}

absl::Status ExecutorQueue::CopyOnDevice(const std::byte* from, std::byte* to, size_t bytes) {
  return CopyIn(from, to, bytes);
}

absl::Status ExecutorQueue::Zero(std::byte* device, size_t bytes) {
  return Do([=] {
    std::memset(device, 0, bytes);
    return absl::OkStatus();
  });
}

absl::Status ExecutorQueue::Push(CodecKind codec, const DevicePush& push) {
  if (launches_ == pushes_) return absl::InternalError("the device failed at a push");
  return Do([codec, push, seed = launches_++] {
    return push.form == ErrorFeedbackForm::kCarry ? Run<Feedback::kCarry>(codec, push, seed)
                                                  : Run<Feedback::kMovingAverage>(codec, push, seed);
  });
}

absl::Status ExecutorQueue::CopyOut(const std::byte* device, std::byte* pinned, size_t bytes) {
  queued_.push_back([=] {
    std::memcpy(pinned, device, bytes);
    return absl::OkStatus();
  });
  return absl::OkStatus();
}

absl::Status ExecutorQueue::Wait() {
  const auto queued = std::move(queued_);
  queued_.clear();
  for (const auto& work : queued) ATOLL_RETURN_IF_ERROR(work());
  return absl::OkStatus();
}

}  // namespace atl::device
