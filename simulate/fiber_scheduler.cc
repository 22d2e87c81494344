#include "simulate/fiber_scheduler.h"

#include <utility>

#include "simulate/fiber_core.h"

namespace atl {

FiberScheduler::FiberScheduler(const Options& options) : core_(std::make_unique<Core>(options)) {}
FiberScheduler::~FiberScheduler() = default;
absl::Status FiberScheduler::Run(std::function<void()> main) { return core_->Run(std::move(main)); }
MonoTime FiberScheduler::now() const { return core_->now(); }
uint64_t FiberScheduler::switches() const { return core_->switches(); }

}  // namespace atl
