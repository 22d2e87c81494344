#ifndef ATOLL_BENCH_LOAD_REPORT_H_
#define ATOLL_BENCH_LOAD_REPORT_H_

#include <string>

#include "bench/load/crowd.h"

namespace atoll {

void PrintLoad(const LoadSettings& settings, const LoadResult& result);
std::string LoadAsJson(const LoadSettings& settings, const LoadResult& result);

}  // namespace atoll

#endif  // ATOLL_BENCH_LOAD_REPORT_H_
