#!/usr/bin/env bash
# Frozen bytes on another processor: cross-compiles core/ with its golden tests (codecs, merges, outer step) for arm64, as the product
# is compiled, and runs them under qemu's user mode.
#   run.sh BUILD_DIR
# Needs scripts/setup.sh --groups arm64, and Debian's servers once: Abseil for arm64 is fetched into BUILD_DIR/sysroot, past dpkg, so that
# the machine stays one of one architecture. Exit codes: 0 every byte is the same, 1 not, 77 something is not installed.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/lib.sh
build=$(realpath -m "$1")
sysroot=$build/sysroot

for program in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
  command -v "$program" >/dev/null || { echo "skipped: $program is not installed (scripts/setup.sh --groups arm64)"; exit 77; }
done
[ -f /usr/src/googletest/CMakeLists.txt ] || { echo "skipped: googletest is not installed (scripts/setup.sh --groups arm64)"; exit 77; }

fetch_abseil() {  # the library that this machine has, for arm64, from the same distribution
  local state=$build/apt runtime version
  runtime=$(dpkg-query -W -f '${Depends}\n' libabsl-dev | grep -oE 'libabsl[0-9a-z]+' | head -1)
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs" "$sysroot/headers"
  : >"$state/status"
  local apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::lists="$state/lists"
    -o Dir::Cache="$state/cache" -o Dir::State::status="$state/status" -o Acquire::Languages=none -o APT::Sandbox::User=root)
  "${apt[@]}" update >"$build/apt.log" 2>&1 || { tail -5 "$build/apt.log"; return 1; }
  for package in libabsl-dev "$runtime"; do
    # The version that is installed here has the headers' own; a newer one of the same release does as well.
    version=$(dpkg-query -W -f '${Version}' "$package")
    (cd "$state/debs" && { "${apt[@]}" download "$package:arm64=$version" || "${apt[@]}" download "$package:arm64"; }) >>"$build/apt.log" 2>&1 ||
      { tail -5 "$build/apt.log"; return 1; }
  done
  for package in "$state"/debs/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  ln -sfn /usr/include/nlohmann "$sysroot/headers/nlohmann"
  touch "$sysroot/complete"
}

mkdir -p "$build"
[ -f "$sysroot/complete" ] || fetch_abseil
cmake -S tests/arm64 -B "$build/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DATOLL_SYSROOT="$sysroot" \
  -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.toolchain.cmake" >"$build/cmake.log" 2>&1 || { tail -20 "$build/cmake.log"; exit 1; }
cmake --build "$build/build" --target core_golden_arm64 >"$build/build.log" 2>&1 || { tail -40 "$build/build.log"; exit 1; }
program=$(find "$build/build" -name core_golden_arm64 -type f)
file -b "$program" | grep -q aarch64
exec qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$sysroot/usr/lib/aarch64-linux-gnu" "$program" --gtest_brief=1
