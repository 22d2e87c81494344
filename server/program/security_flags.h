#ifndef ATOLL_SERVER_PROGRAM_SECURITY_FLAGS_H_
#define ATOLL_SERVER_PROGRAM_SECURITY_FLAGS_H_

#include "CLI/CLI.hpp"
#include "server/program/security.h"

namespace atl {

void AddSecurityFlags(CLI::App& app, SecurityOptions& options);

}  // namespace atl

#endif  // ATOLL_SERVER_PROGRAM_SECURITY_FLAGS_H_
