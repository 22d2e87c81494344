#!/usr/bin/env bash
# Compiles the worker against the LibTorch of another Python, and runs the tests that compute with it. See --help.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/libtorch_check.sh [--python PYTHON] [options]

Compiles what includes LibTorch (worker/torch, worker/models, atoll-worker, atoll-model) against the LibTorch that PYTHON's PyTorch brings, in a
build folder of its own, and runs the unit tests of these folders with it: models, inner step, optimizer, saved states, ranks. The rest of the
tree does not depend on LibTorch, and a compiler cache serves it from the ordinary build.

  --python PYTHON  a Python with torch (default: that of scripts/setup.sh --groups interop)
  --bench          also build atoll-step-speed, for bench/step/step_speed.py
  --build-only     compile and link, and run nothing: for a LibTorch with CUDA
  --jobs N         compile N files at a time (default: the number of cores, fewer if memory is short)
  -h, --help       this text

Exit codes: 0 all tests passed, 1 a test or the build failed, 2 wrong usage.
HELP
}

die() { echo "libtorch_check: $1" >&2; exit 2; }

python=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/atoll/interop/bin/python build_only=no bench=OFF jobs=''
while [ $# -gt 0 ]; do
  case "$1" in
    --python|--jobs)
      [ $# -ge 2 ] || die "$1 needs a value"
      case "$1" in --python) python=$2 ;; --jobs) jobs=$2 ;; esac
      shift ;;
    --build-only) build_only=yes ;;
    --bench) bench=ON ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die "unknown option '$1'" ;;
  esac
  shift
done
found=$("$python" -c 'import torch; print(torch.__version__, torch.utils.cmake_prefix_path)' 2>/dev/null) ||
  die "$python has no torch: name another with --python, or run scripts/setup.sh --groups interop"
read -r version prefix <<<"$found"

build=build/libtorch-${version%%+*} log=build/libtorch-${version%%+*}.log
targets=(atoll-worker atoll-model torch_tests models_tests)
if [ "$bench" = ON ]; then targets+=(atoll-step-speed atoll-data); fi
share_compiler_cache "$PWD"
mkdir -p build
: >"$log"
echo "libtorch_check: building against LibTorch $version (log: $log)"
cmake --preset release -B "$build" -DCMAKE_PREFIX_PATH="$prefix" -DATOLL_BUILD_TESTS=ON -DATOLL_BUILD_BENCH="$bench" >>"$log" 2>&1 ||
  { tail -n 30 "$log" >&2; exit 1; }
run_with_progress libtorch_check "$log" cmake --build "$build" --parallel "${jobs:-$(compile_jobs)}" --target "${targets[@]}" ||
  { grep -nE -A8 'error:|Error|FAILED' "$log" | head -n 60 >&2; exit 1; }
# What runs is what was compiled against, and nothing of Debian's LibTorch beside it: two of them end a program at its start.
for program in "$build"/bin/atoll-{worker,model} "$build"/tests/worker_{torch,models}_*; do
  other=$(ldd "$program" | sed -nE 's/^\s*lib(torch|c10)[^ ]* => (.*) \(.*$/\2/p' | grep -vF "${prefix%/share/cmake}/" || true)
  [ -z "$other" ] || { echo "libtorch_check: $program also runs with $other" >&2; exit 1; }
done
echo "libtorch_check: everything is linked with LibTorch $version"
if [ "$build_only" = yes ]; then exit 0; fi
ctest --test-dir "$build" -L '^(torch|models)$' -LE '^(long|slow|integration)$' --output-on-failure </dev/null
