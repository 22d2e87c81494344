// libFuzzer's two entry points. Which target: --target=NAME (libFuzzer leaves arguments with two dashes
// alone).
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {

const atl::fuzz::Target* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(const int* argc, const char* const* const* argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kFlag)) target = atl::fuzz::FindTarget(argument.substr(kFlag.size()));
  }
  if (target != nullptr) return 0;
  std::fputs("atoll-fuzz: --target=NAME is needed; there are:\n", stderr);
  for (const atl::fuzz::Target& each : atl::fuzz::Targets()) {
    std::fprintf(stderr, "  %s\n", std::string(each.name).c_str());
  }
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run(atl::fuzz::FuzzInput({reinterpret_cast<const std::byte*>(data), size}));
  return 0;
}
