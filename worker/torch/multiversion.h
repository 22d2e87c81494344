#ifndef ATOLL_WORKER_TORCH_MULTIVERSION_H_
#define ATOLL_WORKER_TORCH_MULTIVERSION_H_

// ATOLL_MULTIVERSION before a function compiles it for several instruction sets; the loader picks one. The
// sanitizers cannot run its resolvers, which come before their own start-up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ATOLL_MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define ATOLL_MULTIVERSION
#endif

#endif  // ATOLL_WORKER_TORCH_MULTIVERSION_H_
