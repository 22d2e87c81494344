#include "worker/torch/hardware.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/utsname.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace atl {
namespace {

constexpr std::string_view kCuda = "cuda:";

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream text;
  text << file.rdbuf();
  std::string name = ProcessorIn(text.str());
  utsname machine = {};
  if (name.empty() && ::uname(&machine) == 0) name = machine.machine;
  return name.empty() ? "unknown processor" : name;
}

/// NVIDIA's driver, asked through its C interface (CUDA Driver API, "Device Management"): LibTorch for the
/// processor only has no header of CUDA's, and this file needs none.
class Driver {
 public:
  Driver() : library_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    const auto init = Find<int (*)(unsigned)>("cuInit");
    get_ = Find<int (*)(int*, int)>("cuDeviceGet");
    name_ = Find<int (*)(char*, int, int)>("cuDeviceGetName");
    memory_ = Find<int (*)(size_t*, int)>("cuDeviceTotalMem_v2");
    usable_ = init != nullptr && get_ != nullptr && name_ != nullptr && memory_ != nullptr && init(0) == 0;
  }

  /// False when the driver does not know that device.
  bool Describe(int ordinal, Hardware& hardware) const {
    int device = 0;
    std::array<char, 256> name = {};
    size_t bytes = 0;
    if (!usable_ || get_(&device, ordinal) != 0) return false;
    if (name_(name.data(), static_cast<int>(name.size()) - 1, device) == 0) hardware.name = name.data();
    if (memory_(&bytes, device) == 0) hardware.device_memory_bytes = bytes;
    return true;
  }

 private:
  template <typename Function>
  Function Find(const char* symbol) const {
    return reinterpret_cast<Function>(::dlsym(library_, symbol));
  }

  void* const library_;  // stays loaded: LibTorch uses it too
  bool usable_ = false;
  int (*get_)(int*, int) = nullptr;
  int (*name_)(char*, int, int) = nullptr;
  int (*memory_)(size_t*, int) = nullptr;
};

}  // namespace

uint64_t MainMemory(const MemoryLimitPaths& paths) {
  const MemoryLimit limit = ReadMemoryLimit(paths);
  return limit.known ? limit.bytes : 0;
}

std::string ProcessorIn(std::string_view cpuinfo) {
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(cpuinfo.data(), cpuinfo.size()), '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    const absl::string_view key = absl::StripAsciiWhitespace(field.first);
    const absl::string_view value = absl::StripAsciiWhitespace(field.second);
    // x86 and ARM boards, in this order of what they have.
    if ((key == "model name" || key == "Model" || key == "Hardware") && !value.empty()) {
      return std::string(value);
    }
  }
  return "";
}

Hardware HardwareOf(const std::string& device) {
  Hardware hardware{
      .name = Processor(), .default_threads = at::get_num_threads(), .memory_bytes = MainMemory()};
  int ordinal = 0;
  const std::string_view view = device;
  if (view.starts_with(kCuda) && absl::SimpleAtoi(device.substr(kCuda.size()), &ordinal)) {
    hardware.name = device;  // until the driver names it
    Driver().Describe(ordinal, hardware);
  }
  return hardware;
}

}  // namespace atl
