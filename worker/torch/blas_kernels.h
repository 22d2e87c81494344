#ifndef ATOLL_WORKER_TORCH_BLAS_KERNELS_H_
#define ATOLL_WORKER_TORCH_BLAS_KERNELS_H_

#include <optional>
#include <string>

namespace atl {

/// The value of OPENBLAS_CORETYPE with which a fresh process would multiply faster, or nothing when OpenBLAS
/// is not in use or chose well by itself.
///
/// OpenBLAS picks its kernels when it is loaded, by the processor's model number. Versions older than the
/// processor do not know the number and fall back to the SSE kernels of 2004 (0.3.21, Debian 12, does on a
/// 2023 Xeon), five times slower than what the processor could run; the variable overrules that, but only
/// before the library is loaded.
std::optional<std::string> BetterOpenBlasCore();

/// Starts this program again, in the same process and with the same arguments, with OPENBLAS_CORETYPE set,
/// when BetterOpenBlasCore has a value and the variable is not set yet (`current`: its value, or null).
/// Returns when there is nothing to gain or the system refuses. Call first thing in main, before any thread
/// is there.
void RestartWithBestBlasKernels(const char* current, char** argv);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_BLAS_KERNELS_H_
