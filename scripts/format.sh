#!/usr/bin/env bash
# Formats the C++ files by the rules of .clang-format, or checks their format.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/format.sh [--check] [FILE...]

Runs clang-format 14 (Debian 12's) on the given files, or on all C++ files. Other versions lay out some lines
differently, so they are not used.

  --check     change nothing; print unformatted lines, and exit with 1 if there are any
  -h, --help  this text

Exit codes: 0 ok, 1 not formatted (with --check), 2 wrong usage, 77 clang-format 14 is not installed.
HELP
}

check=no
files=()
for arg in "$@"; do
  case "$arg" in
    --check) check=yes ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) files+=("$arg") ;;
  esac
done

formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [ -z "$formatter" ]; then
  echo "format: skipped: clang-format 14 is not installed here" >&2
  exit 77
fi

if [ ${#files[@]} -eq 0 ]; then
  mapfile -d '' -t files < <(find common core tokenizer storage protos monitoring server client worker cli tests bench \
    \( -name '*.h' -o -name '*.hpp' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null | sort -z)
fi
if [ "$check" = yes ]; then
  "$formatter" --dry-run --Werror "${files[@]}"
  echo "format: ${#files[@]} files are formatted"
else
  "$formatter" -i "${files[@]}"
fi
