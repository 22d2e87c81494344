#!/usr/bin/env bash
# Builds the wheel of the Python package. See --help.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/wheel.sh [options]

Builds atoll-VERSION-py3-none-manylinux_X_Y_x86_64.whl: the Python package with the client library and the engine. One wheel
serves every Python from 3.9 on. X_Y is the oldest glibc that the client library runs with. The engine does not depend on it:
the wheel holds the engine's own loader, C library and other libraries, with their copyright files.

  --out DIR      folder for the wheel (default: dist)
  --build DIR    folder of the build (default: build/release)
  --no-build     use the binaries that are in the build folder
  --python FILE  Python with pip, setuptools and wheel (default: /usr/bin/python3, which has them after
                 scripts/setup.sh --groups wheel)
  -h, --help     this text

Prints the path of the wheel as the last line. Exit codes: 0 done, 1 something failed, 2 wrong usage.
HELP
}

die() { echo "wheel: $2" >&2; exit "$1"; }

out=dist build=build/release make=yes python=/usr/bin/python3
while [ $# -gt 0 ]; do
  case "$1" in
    --out|--build|--python)
      [ $# -ge 2 ] || die 2 "$1 needs a value"
      case "$1" in --out) out=$2 ;; --build) build=$2 ;; --python) python=$2 ;; esac
      shift ;;
    --no-build) make=no ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die 2 "unknown option '$1'" ;;
  esac
  shift
done

[ "$(uname -sm)" = "Linux x86_64" ] || die 1 "this machine is $(uname -sm); the wheel is for Linux on x86_64"
for tool in cc readelf strip ldd; do
  command -v "$tool" >/dev/null || die 1 "$tool is missing; run scripts/setup.sh --groups build,wheel"
done
"$python" -c 'import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, ("pip", "setuptools", "wheel"))))'  ||
  die 1 "$python has no pip, setuptools or wheel; run scripts/setup.sh --groups wheel, or name another with --python"

if [ "$make" = yes ]; then
  [ -f "$build/CMakeCache.txt" ] || cmake --preset release -B "$build" >/dev/null
  share_compiler_cache "$PWD"
  cmake --build "$build" --parallel "$(compile_jobs)" --target atoll_client atoll-engine >&2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --component client --prefix "$work/native" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; die 1 "$build lacks the client library; leave out --no-build, or name the build with --build"; }
library=$(find "$work/native" -name libatoll_client.so.1)
engine=$(find "$work/native" -name atoll-engine)
cc -Os -Wall -Wextra -Werror -static -DLOADER='"ld-linux-x86-64.so.2"' scripts/wheel/engine_launcher.c -o "$work/atoll-engine"

# pip leaves folders in the source, so it builds from a copy.
mkdir "$work/source"
tar -c --exclude=__pycache__ --exclude=_native -C python/ . | tar -x -C "$work/source"
cp LICENSE "$work/source/"
"$python" -m pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir "$work/pure" "$work/source" >&2

mkdir -p "$out"
wheel=$("$python" -B scripts/wheel/assemble.py --pure "$work"/pure/atoll-*.whl --library "$library" --engine "$engine" \
  --launcher "$work/atoll-engine" --out "$out")
echo "wheel: needs glibc $(sed -E 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/' <<<"${wheel##*/}") or newer, $(du -h "$wheel" | cut -f1)" >&2
echo "$wheel"
