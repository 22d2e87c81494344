#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the sources, with the compile commands of a build folder.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/lint.sh [--changed [REVISION]] [--build DIR] [FILE...]

Runs clang-tidy over the given files, or over all of our .cc files, two at a time (one per core).

  --changed [REV]  only files that differ from REV (default: HEAD), also uncommitted ones
  --build DIR      build folder with compile_commands.json (default: build/release, or what is there)
  -h, --help       this text

Exit codes: 0 clean, 1 warnings, 2 wrong usage, 3 no clang-tidy or no build folder.
HELP
}

changed=no revision=HEAD build=
files=()
while [ $# -gt 0 ]; do
  case "$1" in
    --changed) changed=yes; case "${2:-}" in ''|-*|*.cc|*.h) ;; *) revision=$2; shift ;; esac ;;
    --build) [ $# -ge 2 ] || { usage >&2; exit 2; }; build=$2; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done

command -v clang-tidy >/dev/null || { echo "lint: no clang-tidy; run scripts/setup.sh --groups lint" >&2; exit 3; }
for candidate in "$build" build/release build/dev; do
  if [ -n "$candidate" ] && [ -f "$candidate/compile_commands.json" ]; then build=$candidate; break; fi
done
[ -f "$build/compile_commands.json" ] || { echo "lint: no compile_commands.json; run cmake --preset dev" >&2; exit 3; }

folders=(common core storage protos monitoring server worker cli bench tests)
if [ "$changed" = yes ]; then
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$revision"; git ls-files -o --exclude-standard; } |
    grep -E '^(common|core|storage|protos|monitoring|server|worker|cli|bench|tests)/.*\.cc$' | sort -u || true)
  [ ${#files[@]} -gt 0 ] || { echo "lint: nothing changed since $revision"; exit 0; }
elif [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(find "${folders[@]}" -name '*.cc' 2>/dev/null | sort)
fi

# A file that this build does not compile (the LibTorch worker with ATOLL_WITH_TORCH=OFF) cannot be checked with it.
checked=()
for file in "${files[@]}"; do
  if grep -qF "/$file\"" "$build/compile_commands.json"; then checked+=("$file"); else echo "lint: not in $build: $file"; fi
done
[ ${#checked[@]} -gt 0 ] || { echo "lint: no file of $build to check" >&2; exit 2; }
echo "lint: ${#checked[@]} files, $(clang-tidy --version | sed -n 's/.*version /clang-tidy /p' | head -n 1)"
printf '%s\0' "${checked[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" 2> >(grep -v 'warnings generated' >&2)
echo "lint: clean"
