#ifndef ATOLL_WORKER_TORCH_TORCH_STATUS_H_
#define ATOLL_WORKER_TORCH_TORCH_STATUS_H_

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// What to do when the memory for a step does not suffice.
inline constexpr std::string_view kSmallerSteps =
    "use a smaller inner.batch with more inner.accumulation, or inner.recompute_activations";

/// What LibTorch threw, as a status: out of memory is ResourceExhausted and ends with `remedy`, everything
/// else is Internal. `doing` says what was being done. Call inside a catch block.
inline absl::Status StatusFromTorchException(std::string_view doing, std::string_view remedy) {
  const std::string what(doing);
  try {
    throw;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("out of memory") != std::string::npos || text.find("can't allocate") != std::string::npos) {
      return absl::ResourceExhaustedError(absl::StrCat(what, ": ", text, "; ", std::string(remedy)));
    }
    return absl::InternalError(absl::StrCat(what, ": ", text));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": out of memory; ", std::string(remedy)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(what, ": ", error.what()));
  }
}

/// Runs `body` (which returns a Status or a StatusOr) and turns what LibTorch throws into a status: no
/// exception crosses this folder's border.
template <typename Body>
auto CatchTorch(std::string_view doing, Body&& body, std::string_view remedy = kSmallerSteps)
    -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return StatusFromTorchException(doing, remedy);
  }
}

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_TORCH_STATUS_H_
