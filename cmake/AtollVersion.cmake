# Target atoll::version: header "atoll/version.h" with kVersion and kGitRevision. The header is looked at in every build
# and rewritten only when it changes, so a new commit recompiles only the files that include it.
set(ATOLL_REVISION "" CACHE STRING "Revision that --version prints; empty: that of the git working tree, if it is one")
set(ATOLL_VERSION_DIR ${CMAKE_BINARY_DIR}/gen/version)
set(version_args
  -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D VERSION=${PROJECT_VERSION} -D REVISION=${ATOLL_REVISION}
  -D TEMPLATE=${CMAKE_CURRENT_LIST_DIR}/version.h.in -D OUT=${ATOLL_VERSION_DIR}/atoll/version.h
  -P ${CMAKE_CURRENT_LIST_DIR}/WriteVersion.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} ${version_args} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(atoll_version_header
  COMMAND ${CMAKE_COMMAND} ${version_args}
  BYPRODUCTS ${ATOLL_VERSION_DIR}/atoll/version.h
  COMMENT "version.h" VERBATIM)

add_library(atoll_version INTERFACE)
add_library(atoll::version ALIAS atoll_version)
target_include_directories(atoll_version INTERFACE ${ATOLL_VERSION_DIR})
add_dependencies(atoll_version atoll_version_header)
