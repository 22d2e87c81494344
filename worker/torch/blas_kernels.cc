#include "worker/torch/blas_kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace atl {
namespace {

// OpenBLAS's names for cores whose kernels use no vectors wider than 128 bits.
constexpr std::array<std::string_view, 12> kNarrowCores = {
    "Katmai", "Coppermine", "Northwood",  "Prescott", "Banias", "Atom",
    "Core2",  "Penryn",     "Dunnington", "Nehalem",  "Athlon", "Opteron"};

#if defined(__x86_64__)
std::optional<std::string> BestCoreOfThisProcessor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "SKYLAKEX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
  return std::nullopt;
}
#else
std::optional<std::string> BestCoreOfThisProcessor() { return std::nullopt; }
#endif

}  // namespace

std::optional<std::string> BetterOpenBlasCore() {
  // Looked up, not linked: LibTorch may come with another BLAS.
  using CoreName = char* (*)();
  const auto core_name = reinterpret_cast<CoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core_name == nullptr) return std::nullopt;
  const std::string_view chosen = core_name();
  if (std::find(kNarrowCores.begin(), kNarrowCores.end(), chosen) == kNarrowCores.end()) return std::nullopt;
  return BestCoreOfThisProcessor();
}

void RestartWithBestBlasKernels(const char* current, char** argv) {
  if (current != nullptr) return;
  const std::optional<std::string> core = BetterOpenBlasCore();
  if (!core.has_value() || setenv("OPENBLAS_CORETYPE", core->c_str(), /*overwrite=*/0) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace atl
