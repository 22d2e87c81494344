# cmake -D SOURCE_DIR=... -D VERSION=... [-D REVISION=...] -D TEMPLATE=... -D OUT=... -P WriteVersion.cmake
# A source tree without git (a release archive, the build stage of an image) has no revision but REVISION: else it is empty.
set(GIT_REVISION "${REVISION}")
find_program(GIT git)
if(GIT_REVISION STREQUAL "" AND GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE_DIR}
    OUTPUT_VARIABLE GIT_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${TEMPLATE} ${OUT} @ONLY)
