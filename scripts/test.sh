#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests with ctest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'HELP'
Usage: scripts/test.sh [--full | --ci] [options]

Without options: scripts/setup.sh, preset release, every test but the long ones. From nothing but apt this takes
under 25 minutes on two cores.

  --ci           also ASan+UBSan over the unit tests and TSan over the threaded ones (what .ci/run does)
  --full         also everything labelled long: convergence, crash loops, packages; and each decoder of foreign
                 bytes under libFuzzer for 60 s (ATOLL_FUZZ_SECONDS), where clang is installed
  --jobs N       compile N files at a time (default: the number of cores, fewer where memory is short)
  --tests REGEX  only the tests whose names match
  --junit DIR    write one JUnit file for each stage into DIR
  --no-setup     do not look for missing packages
  -h, --help     this text

The builds are in build/release, build/asan, build/tsan and build/fuzz; a second call compiles only what changed.
Exit codes: 0 all tests passed, 1 a test or the build failed, 2 wrong usage.
HELP
}

die() { echo "test: $1" >&2; exit 2; }

mode=quick setup=yes junit= regex= jobs=
while [ $# -gt 0 ]; do
  case "$1" in
    --ci) mode=ci ;;
    --full) mode=full ;;
    --no-setup) setup=no ;;
    --jobs|--tests|--junit)
      [ $# -ge 2 ] || die "$1 needs a value"
      case "$1" in --jobs) jobs=$2 ;; --tests) regex=$2 ;; --junit) junit=$2 ;; esac
      shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die "unknown option '$1'" ;;
  esac
  shift
done

# A file that includes LibTorch takes about 2 GiB to compile.
if [ -z "$jobs" ]; then
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)
  jobs=$(nproc)
  if [ "$by_memory" -lt "$jobs" ]; then jobs=$((by_memory > 1 ? by_memory : 1)); fi
fi
if [ -n "$junit" ]; then
  mkdir -p "$junit"
  junit=$(cd "$junit" && pwd)
fi

failed=()

build() {  # build PRESET: says how long it took; a build that fails ends everything
  local preset=$1 log=build/$1.log start=$SECONDS
  mkdir -p build
  echo "test: building preset $preset with $jobs jobs (log: $log)"
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$jobs"; } >"$log" 2>&1; then
    grep -nE -A8 'error:|Error|FAILED' "$log" | head -n 80 >&2 || true
    tail -n 20 "$log" >&2
    echo "test: the build of preset $preset failed; the whole output is in $log" >&2
    exit 1
  fi
  echo "test: built preset $preset in $((SECONDS - start)) s"
}

run() {  # run NAME PRESET CTEST-ARGUMENTS...: a failing stage is remembered, and the next ones still run
  local name=$1 preset=$2
  shift 2
  local args=(--preset "$preset" --output-on-failure "$@")
  if [ -n "$regex" ]; then args+=(-R "$regex" --no-tests=ignore); else args+=(--no-tests=error); fi
  if [ -n "$junit" ]; then args+=(--output-junit "$junit/$name.xml"); fi
  echo "test: stage $name"
  ctest "${args[@]}" </dev/null || failed+=("$name")
}

# The threaded folders: what TSan can say something about. Tests that other programs take part in (a Prometheus, a browser)
# would measure those.
threaded='^(common|storage|server|sync|monitoring)$'

if [ "$setup" = yes ]; then ./scripts/setup.sh; fi
if [ "$mode" != quick ]; then
  build tsan
  run tsan tsan -j "$jobs" -L "$threaded" -LE '^(long|style|integration|browser)$'
  build asan
  run asan asan -j "$jobs" -L '^unit$' -LE '^(long|style|integration|browser)$'
fi
if [ "$mode" = full ]; then
  if [ "$setup" = yes ]; then ./scripts/setup.sh --groups fuzz; fi
  if command -v clang++ >/dev/null; then
    cmake --preset fuzz -DATOLL_FUZZ_SECONDS="${ATOLL_FUZZ_SECONDS:-60}" >/dev/null
    build fuzz
    run fuzz fuzz -j "$(nproc)"
  else
    echo "test: stage fuzz skipped: no clang++ here (scripts/setup.sh --groups fuzz)"
  fi
fi
build release
if [ "$mode" = full ]; then
  run release-long release -j 1 -L '^long$'
fi
# Last, so that the output ends with the summary of the suite that users see.
run release release -j "$(nproc)" -LE '^long$'

if [ ${#failed[@]} -gt 0 ]; then
  echo "test: FAILED: ${failed[*]}" >&2
  exit 1
fi
