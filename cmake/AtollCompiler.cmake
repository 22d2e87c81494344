# Compiler settings that every target of ours shares (target atoll_compiler, linked privately by atoll_library & co).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
endif()

find_program(ATOLL_CCACHE ccache)
if(ATOLL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATOLL_CCACHE})
endif()

find_program(ATOLL_MOLD mold)
if(ATOLL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# LibTorch and gRPC ask for it, so that without it their precompiled headers would fit some targets and not others.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-pthread>)

add_library(atoll_compiler INTERFACE)
# -ffp-contract=off: replay is bit-exact on every instruction set, so the compiler may not fuse on its own.
target_compile_options(atoll_compiler INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-unused-parameter -Werror -ffp-contract=off)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # clang is here for libFuzzer: what it alone complains of stops nobody.
  target_compile_options(atoll_compiler INTERFACE -Wno-error -Wno-unknown-pragmas -Wno-unused-const-variable)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # CI has GCC 12. Each later GCC follows other paths, and warns of some that no program takes.
  target_compile_options(atoll_compiler INTERFACE -Wno-error)
endif()

if(ATOLL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang: use the preset fuzz, or -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Every object counts the edges that it takes; the fuzzer itself is linked only to the program in tests/fuzz.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(ATOLL_SANITIZE)
  add_compile_options(-fsanitize=${ATOLL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATOLL_SANITIZE})
  if(ATOLL_SANITIZE_WITHOUT)
    add_compile_options(-fno-sanitize=${ATOLL_SANITIZE_WITHOUT})
  endif()
  # g++ sees uninitialised values where the instrumentation is: in moves of a std::variant, for example. The other builds
  # have the warning.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # A report ends the program, so that a test fails on it. Known reports of foreign libraries are listed with a reason.
  set(ATOLL_SANITIZE_ENVIRONMENT
    "ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1:check_initialization_order=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/sanitizers/lsan.supp:print_suppressions=0"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/sanitizers/tsan.supp:halt_on_error=1:second_deadlock_stack=1")
endif()
