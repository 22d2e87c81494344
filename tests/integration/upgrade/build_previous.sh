#!/usr/bin/env bash
# build_previous.sh FOLDER: builds the coordinator, the worker and the tools of the previous release into FOLDER/bin.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ $# -eq 1 ] || { echo "usage: build_previous.sh FOLDER" >&2; exit 2; }

read -r name commit < <(grep -v '^#' "$here/previous_release")
has_commit() { git -C "$root" cat-file -e "$commit^{commit}" 2>/dev/null; }
# A shallow clone lacks it, but its origin has it.
has_commit || git -C "$root" fetch --quiet --depth 1 origin "$commit" 2>/dev/null || true
if ! has_commit; then
  echo "skipped: this is no clone with the history of $name ($commit)"
  exit 77
fi

mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ "$(cat "$folder/built" 2>/dev/null)" = "$commit" ]; then exit 0; fi
rm -rf "$folder/source" "$folder/build"
mkdir -p "$folder/source"
git -C "$root" archive "$commit" | tar -x -C "$folder/source"
# Compiled files are shared with the release build where they are the same.
share_compiler_cache "$folder/source"
cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DATOLL_BUILD_TESTS=OFF -DATOLL_BUILD_BENCH=OFF >"$folder/configure.log" 2>&1 || { tail -n 30 "$folder/configure.log"; exit 1; }
cmake --build "$folder/build" --target atoll-coordinator atoll-worker atollctl atoll-data >"$folder/build.log" 2>&1 ||
  { grep -nE -A8 'error:|FAILED' "$folder/build.log" | head -n 60; exit 1; }
rm -rf "$folder/bin"
cp -r "$folder/build/bin" "$folder/bin"
echo "$commit" >"$folder/built"
