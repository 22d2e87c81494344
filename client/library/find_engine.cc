#include "client/library/find_engine.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace atl::library {
namespace {

constexpr char kProgram[] = "atoll-engine";
/// Relative to the library's folder: an installation or a Python wheel, one folder for both, a build tree,
/// and others.
constexpr const char* kFolders[] = {"atoll", ".", "../bin", "../lib/atoll", "../../bin"};

/// Empty when the loader does not know.
std::string FolderOfLibrary() {
  Dl_info facts = {};
  if (::dladdr(reinterpret_cast<const void*>(&atl_open), &facts) == 0 || facts.dli_fname == nullptr)
    return "";
  std::string path = facts.dli_fname;
  if (char* const resolved = ::realpath(path.c_str(), nullptr); resolved != nullptr) {
    path = resolved;
    ::free(resolved);
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool CanRun(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

std::string ValueOf(const std::vector<ipc::Option>& options, const std::string& name) {
  for (const ipc::Option& option : options) {
    if (option.name == name) return option.value;
  }
  return "";
}

Result FindEngine(const std::vector<ipc::Option>& options, std::string& path) {
  path = ValueOf(options, "engine");
  std::string source = "option engine";
  if (path.empty()) {
    const char* const variable = std::getenv("ATOLL_ENGINE");
    if (variable != nullptr) path = variable;
    source = "ATOLL_ENGINE";
  }
  if (!path.empty()) {
    if (CanRun(path)) return {};
    return Failure(ATL_NOT_FOUND,
                   Text("%s: '%s' is no program that can be run", source.c_str(), path.c_str()));
  }
  const std::string folder = FolderOfLibrary();
  for (const char* const place : kFolders) {
    path = folder + "/" + place + "/" + kProgram;
    if (CanRun(path)) return {};
  }
  std::string places;
  for (const char* const place : kFolders) places += (places.empty() ? "" : ", ") + folder + "/" + place;
  return Failure(ATL_NOT_FOUND,
                 Text("there is no %s in %s; install the engine of the same release, or name it by the "
                      "option engine or by ATOLL_ENGINE",
                      kProgram, places.c_str()));
}

}  // namespace atl::library
