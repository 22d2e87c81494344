// Included before every source file by the build (-include, see AtollCompiler.cmake).
//
// C99 has a function of our name, `long long atoll(const char*)`, and <stdlib.h> puts it into the global namespace, where
// a namespace of the same name cannot stand beside it. The protobuf package atoll.v1 fixes the C++ namespace atoll::v1,
// so the name cannot simply be avoided. Therefore: let the C library declare its function first, then let every later
// `atoll` mean our namespace under another name. String literals ("atoll.v1") and include paths are not touched.
#ifndef ATOLL_CMAKE_NAMESPACE_ATOLL_H_
#define ATOLL_CMAKE_NAMESPACE_ATOLL_H_

#include <stdlib.h>

#include <cstdlib>

#define atoll atoll_diloco

#endif  // ATOLL_CMAKE_NAMESPACE_ATOLL_H_
