#include "cli/doctor/host.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/file.h"
#include "common/human.h"

namespace atl {
namespace {

// Enough for a connection, a staged payload and a few RocksDB files per worker, for some hundred workers.
constexpr uint64_t kWantedOpenFiles = 4096;

std::string ReadProc(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The value of the first line "key : value".
std::string ValueOf(const std::string& text, const std::string& key) {
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (parts.size() == 2 && std::string(absl::StripAsciiWhitespace(parts[0])) == key) {
      return std::string(absl::StripAsciiWhitespace(parts[1]));
    }
  }
  return "";
}

Check Blas(bool own_loop) {
  if (own_loop) return Ok("blas", "not checked: workers of an external model bring their own libraries");
  constexpr char kLibrary[] = "libblas.so.3";
  void* blas = ::dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (blas == nullptr) return JudgeBlas("", std::nullopt);
  // This also searches libraries that libblas.so.3 depends on: Debian's libblas.so.3 of OpenBLAS is only a
  // wrapper.
  const auto parallel = reinterpret_cast<int (*)()>(::dlsym(blas, "openblas_get_parallel"));
  // Never closed, because OpenBLAS has started threads.
  return JudgeBlas(kLibrary, parallel == nullptr ? std::nullopt : std::optional<int>(parallel()));
}

Check Gpu() {
  std::vector<std::string> devices;
  const auto names = ListDir("/dev");
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const bool numbered = name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    if (name.rfind("nvidia", 0) == 0 && numbered) devices.push_back(name);
  }
  if (devices.empty()) return Ok("gpu", "none: workers on this machine train on the processor");
  std::string text = absl::StrFormat("%d NVIDIA device%s", devices.size(), devices.size() == 1 ? "" : "s");
  const std::string version = ReadProc("/proc/driver/nvidia/version");
  if (version.empty()) {
    return Warn("gpu", text + ", but no driver is loaded",
                "load the driver; nvidia-smi should list the devices");
  }
  return Ok("gpu", text + ", driver: " + version.substr(0, version.find('\n')));
}

Check OpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return JudgeOpenFiles(limit.rlim_cur, limit.rlim_max);
}

}  // namespace

Check JudgeProcessor(const std::string& cpuinfo, unsigned threads, bool own_loop) {
  const std::string x86 = ValueOf(cpuinfo, "flags");
  const std::string features = " " + (x86.empty() ? ValueOf(cpuinfo, "Features") : x86) + " ";
  const auto has = [&](const std::string& name) {
    return features.find(" " + name + " ") != std::string::npos;
  };
  std::vector<std::string> found;
  for (const auto& [flag, name] : {std::pair("avx2", "AVX2"),
                                   {"avx512f", "AVX-512"},
                                   {"avx512_bf16", "AVX-512 bf16"},
                                   {"amx_bf16", "AMX bf16"},
                                   {"asimd", "NEON"},
                                   {"sve", "SVE"},
                                   {"bf16", "bf16"}}) {
    if (has(flag)) found.emplace_back(name);
  }
  const std::string text =
      absl::StrFormat("%s, %s", Counted(threads, "thread"),
                      found.empty() ? "no vector units known" : absl::StrJoin(found, ", "));
  if (!x86.empty() && !has("avx2")) {
    return Warn("processor", text, "without AVX2 merging and training are several times slower");
  }
  const bool faster = has("amx_bf16") && !own_loop;
  return Ok("processor", faster ? text + ": inner.precision bf16 is faster here" : text);
}

Check JudgeOpenFiles(uint64_t soft, uint64_t hard) {
  if (soft >= kWantedOpenFiles) return Ok("open files", absl::StrFormat("limit %d", soft));
  return Warn(
      "open files", absl::StrFormat("limit %d", soft),
      hard >= kWantedOpenFiles
          ? absl::StrFormat("ulimit -n %d before starting a coordinator for many workers", kWantedOpenFiles)
          : absl::StrFormat("raise it to %d for a coordinator of many workers (LimitNOFILE= in a unit)",
                            kWantedOpenFiles));
}

Check JudgeBlas(const std::string& library, std::optional<int> openblas_parallel) {
  constexpr char kInstall[] = "on machines with workers: apt-get install libopenblas0-openmp";
  if (library.empty()) {
    return Warn("blas", "no libblas.so.3: the distribution's LibTorch cannot run here", kInstall);
  }
  if (!openblas_parallel.has_value()) {
    return Warn("blas", "the reference BLAS: matrix products are some hundred times slower", kInstall);
  }
  if (*openblas_parallel == 2) return Ok("blas", "OpenBLAS with OpenMP");
  return Warn("blas",
              *openblas_parallel == 1 ? "OpenBLAS with its own threads, which compete with LibTorch's"
                                      : "OpenBLAS without threads",
              kInstall);
}

Check JudgeMemory(uint64_t total, const HostNeed& need) {
  std::string text = HumanBytes(total) + " in the machine";
  if (!need.coordinator_bytes) return Ok("memory", text);
  absl::StrAppendFormat(&text, "; the coordinator needs %s, a worker %s", HumanBytes(*need.coordinator_bytes),
                        need.worker_bytes ? "about " + HumanBytes(*need.worker_bytes)
                                          : "as much as its model and its program need");
  const bool coordinator_fits = *need.coordinator_bytes < total;
  const bool worker_fits = !need.worker_bytes || *need.worker_bytes < total;
  if (coordinator_fits && worker_fits) return Ok("memory", text);
  if (!coordinator_fits && !worker_fits) {
    return Fail("memory", text, "neither fits: use a larger machine or a smaller model");
  }
  return Warn("memory", text,
              coordinator_fits ? "no worker fits here: run workers elsewhere, or use a smaller inner.batch"
                               : "the coordinator does not fit here: run it elsewhere");
}

std::vector<Check> CheckHost(const HostNeed& need) {
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return {JudgeProcessor(ReadProc("/proc/cpuinfo"), std::thread::hardware_concurrency(), need.own_loop),
          JudgeMemory(pages * page, need), Blas(need.own_loop), Gpu(), OpenFiles()};
}

}  // namespace atl
