// Without libFuzzer, with any compiler: runs a target over the inputs of a folder, and over simple changes of
// each of them, the same at every run.
//
// Usage: atoll-fuzz --target=NAME [--changes=N] FOLDER
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

std::vector<std::byte> ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// A few bytes changed, a stretch cut out or doubled, or the end cut off.
std::vector<std::byte> Changed(std::vector<std::byte> bytes, std::mt19937& random) {
  if (bytes.empty()) return bytes;
  const size_t at = random() % bytes.size();
  const size_t count = std::min<size_t>(1 + random() % 16, bytes.size() - at);
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  switch (random() % 4) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes.erase(begin, end);
      break;
    case 2: {
      const std::vector<std::byte> copy(begin, end);
      bytes.insert(begin, copy.begin(), copy.end());
      break;
    }
    default:
      for (size_t i = 0; i < 1 + random() % 4; ++i) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
  }
  return bytes;
}

/// An input that kills the program is to be had from the file that this leaves.
void Run(const Target& target, std::vector<std::byte> bytes) {
  bytes.shrink_to_fit();  // so that AddressSanitizer sees a read past the end
  target.run(FuzzInput(bytes));
}

int RunFolder(const Target& target, const std::string& folder, size_t changes) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) paths.push_back(entry.path());
  if (paths.empty()) {
    std::fprintf(stderr, "atoll-fuzz: %s holds no inputs\n", folder.c_str());
    return 2;
  }
  std::ranges::sort(paths);
  std::mt19937 random(1);
  for (const auto& path : paths) {
    // The last line before a crash says what it was.
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);
    const std::vector<std::byte> bytes = ReadAll(path);
    Run(target, bytes);
    for (size_t i = 0; i < changes; ++i) {
      std::vector<std::byte> changed = Changed(bytes, random);
      if (i % 4 == 3) changed = Changed(std::move(changed), random);
      Run(target, std::move(changed));
    }
  }
  std::printf("%s: %zu inputs, each as it is and in %zu changes\n", std::string(target.name).c_str(),
              paths.size(), changes);
  return 0;
}

int Main(int argc, char** argv) {
  const Target* target = nullptr;
  size_t changes = 0;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--target=")) {
      target = FindTarget(argument.substr(9));
    } else if (argument.starts_with("--changes=")) {
      changes = std::strtoul(argv[i] + 10, nullptr, 10);
    } else {
      folder = argument;
    }
  }
  if (target != nullptr && !folder.empty()) return RunFolder(*target, folder, changes);
  std::fputs("usage: atoll-fuzz --target=NAME [--changes=N] FOLDER\n", stderr);
  return 2;
}

}  // namespace
}  // namespace atl::fuzz

int main(int argc, char** argv) { return atl::fuzz::Main(argc, argv); }
