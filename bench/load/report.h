#ifndef ATOLL_BENCH_LOAD_REPORT_H_
#define ATOLL_BENCH_LOAD_REPORT_H_

#include <string>

#include "bench/load/crowd.h"

namespace atl {

void PrintLoad(const LoadSettings& settings, const LoadResult& result);
std::string LoadAsJson(const LoadSettings& settings, const LoadResult& result);

}  // namespace atl

#endif  // ATOLL_BENCH_LOAD_REPORT_H_
