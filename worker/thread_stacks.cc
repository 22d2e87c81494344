// Threads that ask for a small stack get one that they can live on. The web server below the metrics port
// asks for 100 KiB; the thread-local variables of LibTorch's libraries (OpenBLAS 60 KiB, glog 30, torch 10)
// are cut from that, nothing is left, and pthread_create fails with EINVAL. A larger stack is address space,
// not memory. Linked into the program itself, whose symbols come before the C library's.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace {

constexpr size_t kSmallestStack = size_t{1} << 20;

}  // namespace

extern "C" int pthread_attr_setstacksize(pthread_attr_t* attributes, size_t size) noexcept {
  using Function = int (*)(pthread_attr_t*, size_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_attr_setstacksize"));
  return next == nullptr ? ENOSYS : next(attributes, std::max(size, kSmallestStack));
}
