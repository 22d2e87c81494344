/* `atoll-engine` of the wheel: runs the bundled engine with the bundled loader and C library, so that the machine's glibc
 * may be older than the engine's. It is linked statically, because the bundled libraries are found only after it has run.
 *
 *   atoll-engine                      this program
 *   engine/ld-linux-x86-64.so.2       the loader
 *   engine/atoll-engine, engine/lib/  the engine and every library of it
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWN_ARGUMENTS 7

int main(int argc, char** argv) {
  char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
  if (length < 0) {
    fprintf(stderr, "atoll-engine: cannot find its folder: /proc/self/exe: %s; is /proc mounted?\n", strerror(errno));
    return 1;
  }
  folder[length] = '\0';
  *strrchr(folder, '/') = '\0';

  char loader[PATH_MAX + 64], libraries[PATH_MAX + 64], engine[PATH_MAX + 64];
  snprintf(loader, sizeof(loader), "%s/engine/" LOADER, folder);
  snprintf(libraries, sizeof(libraries), "%s/engine/lib", folder);
  snprintf(engine, sizeof(engine), "%s/engine/atoll-engine", folder);

  char** arguments = calloc((size_t)argc + OWN_ARGUMENTS + 1, sizeof(char*));
  if (arguments == NULL) {
    fputs("atoll-engine: out of memory\n", stderr);
    return 1;
  }
  char* own[OWN_ARGUMENTS] = {loader, "--inhibit-cache", "--library-path", libraries, "--argv0", argv[0], engine};
  memcpy(arguments, own, sizeof(own));
  for (int i = 1; i < argc; ++i) arguments[OWN_ARGUMENTS - 1 + i] = argv[i];

  /* Libraries for the machine's glibc do not fit the bundled one. */
  unsetenv("LD_PRELOAD");
  unsetenv("LD_AUDIT");
  unsetenv("LD_LIBRARY_PATH");
  execv(loader, arguments);
  fprintf(stderr, "atoll-engine: cannot start %s: %s; install the package again\n", loader, strerror(errno));
  return 1;
}
