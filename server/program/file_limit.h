#ifndef ATOLL_SERVER_PROGRAM_FILE_LIMIT_H_
#define ATOLL_SERVER_PROGRAM_FILE_LIMIT_H_

#include <cstddef>

namespace atl {

/// Descriptors reserved for the store, uploads and the program itself.
inline constexpr size_t kReservedDescriptors = 768;

/// How many connections each of two ports can have (the health port has few): `wanted`, or what such a limit
/// leaves. At least 16.
size_t ConnectionsWithin(size_t wanted, size_t file_limit);

}  // namespace atl

#endif  // ATOLL_SERVER_PROGRAM_FILE_LIMIT_H_
