#include "worker/torch/cuda_driver.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <exception>

#include "absl/strings/str_format.h"
#include "worker/torch/device_count.h"

namespace atl {
namespace {

constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE

std::optional<int> CudaOfLibTorch() {
  try {
    return static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
  } catch (const std::exception&) {
    return std::nullopt;  // the hooks of a LibTorch without CUDA throw
  }
}

std::string CudaName(int cuda) { return absl::StrFormat("CUDA %d.%d", cuda / 1000, cuda % 1000 / 10); }

}  // namespace

CudaFacts ReadCudaFacts(const char* library) {
  CudaFacts facts{.built_for = CudaOfLibTorch()};
  void* const driver = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return facts;
  facts.has_driver = true;
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto version = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDriverGetVersion"));
  if (init != nullptr) facts.init_error = init(0);
  if (version != nullptr && version(&facts.supported) != 0) facts.supported = 0;
  return facts;
}

std::string WhyNoCuda(const CudaFacts& facts) {
  if (!facts.built_for.has_value()) {
    return "this program's LibTorch has no CUDA; build it with a LibTorch for CUDA "
           "(docs/reference/dependencies.md, \"GPUs\"), or use cpu";
  }
  if (!facts.has_driver) {
    return "NVIDIA's driver is missing (there is no libcuda.so.1); install it, start the container with the "
           "GPUs "
           "(--gpus all; in Kubernetes the resource nvidia.com/gpu), or use cpu";
  }
  // A driver supports all minor versions of its major version.
  if (facts.supported != 0 && facts.supported / 1000 < *facts.built_for / 1000) {
    return absl::StrFormat(
        "NVIDIA's driver is too old: it supports %s, and LibTorch was built for %s; update the driver, build "
        "with a "
        "LibTorch for CUDA %d, or use cpu",
        CudaName(facts.supported), CudaName(*facts.built_for), facts.supported / 1000);
  }
  if (facts.init_error != 0 && facts.init_error != kNoDevice) {
    return absl::StrFormat(
        "NVIDIA's driver does not start (cuInit returns %d); run nvidia-smi, which says why; after an update "
        "of the "
        "driver restart the machine, or use cpu",
        facts.init_error);
  }
  return "NVIDIA's driver shows no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES, or use cpu";
}

std::string WhyGpuIsIdle() {
  if (CudaDevices() > 0) return "";
  const CudaFacts facts = ReadCudaFacts();
  return facts.has_driver ? WhyNoCuda(facts) : "";
}

}  // namespace atl
