#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the sources.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/lint.sh [--changed [REVISION]] [--minutes N] [--build DIR] [FILE...]

Runs clang-tidy over the given files, or over all of our .cc files, one per core at a time. For a header it checks a .cc file
that includes it.

  --changed [REV]  only files that differ from REV, also uncommitted ones (default: HEAD). `clean` stands for the revision in
                   tests/style/lint_clean_revision, at which the whole tree was clean
  --minutes N      begin no file after N minutes; the files that were not reached are named
  --build DIR      build folder with compile_commands.json (default: build/lint, which is configured and never built)
  -h, --help       this text

Exit codes: 0 clean as far as it came, 1 warnings, 2 wrong usage, 3 no clang-tidy or no build folder.
HELP
}

changed=no revision=HEAD build='' minutes=0
files=()
while [ $# -gt 0 ]; do
  case "$1" in
    --changed) changed=yes; case "${2:-}" in ''|-*|*.cc|*.h) ;; *) revision=$2; shift ;; esac ;;
    --minutes) [ $# -ge 2 ] || { usage >&2; exit 2; }; minutes=$2; shift ;;
    --build) [ $# -ge 2 ] || { usage >&2; exit 2; }; build=$2; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) files+=("$1") ;;
  esac
  shift
done

command -v clang-tidy >/dev/null || { echo "lint: no clang-tidy; run scripts/setup.sh --groups lint" >&2; exit 3; }
started=$SECONDS

# A folder of its own: the others may have precompiled headers, which are g++'s, or files compiled in batches.
if [ -z "$build" ]; then
  build=build/lint
  mkdir -p "$build"
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DATOLL_PCH=OFF -DATOLL_UNITY=OFF >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; exit 3; }
  # Only the messages are made; no file is compiled.
  mapfile -t generated < <(ninja -C "$build" -t targets all | sed -nE 's/^([^ ]+\.pb\.h): .*/\1/p' | sort -u)
  ninja -C "$build" "${generated[@]}" >"$build/generate.log" 2>&1 || { tail -n 20 "$build/generate.log" >&2; exit 3; }
fi
[ -f "$build/compile_commands.json" ] || { echo "lint: no compile_commands.json in $build" >&2; exit 3; }

folders=(common core storage protos monitoring server worker cli bench tests)
ours="^($(IFS='|'; echo "${folders[*]}"))/.*\.(cc|h)$"
if [ "$changed" = yes ]; then
  if [ "$revision" = clean ]; then revision=$(cat tests/style/lint_clean_revision); fi
  # A clone without that revision checks what the last commit changed.
  git cat-file -e "$revision^{commit}" 2>/dev/null ||
    { echo "lint: this clone lacks revision $revision; checking the last commit"; revision=HEAD~1; }
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$revision"; git ls-files -o --exclude-standard; } |
    grep -E "$ours" | sort -u || true)
  [ ${#files[@]} -gt 0 ] || { echo "lint: nothing changed since $revision"; exit 0; }
elif [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(find "${folders[@]}" -name '*.cc' 2>/dev/null | sort)
fi

# In place of a header: its own .cc file, or one that includes it.
sources=()
for file in "${files[@]}"; do
  case "$file" in
    *.h)
      if [ -f "${file%.h}.cc" ]; then
        sources+=("${file%.h}.cc")
      else
        user=$(grep -rlF --include='*.cc' "#include \"$file\"" "${folders[@]}" | sort | head -n 1) || true
        if [ -n "$user" ]; then sources+=("$user"); else echo "lint: no .cc file includes $file"; fi
      fi ;;
    *) sources+=("$file") ;;
  esac
done
mapfile -t sources < <(printf '%s\n' ${sources[@]+"${sources[@]}"} | sort -u)

# A file that this build does not compile (the LibTorch worker with ATOLL_WITH_TORCH=OFF) cannot be checked with it.
checked=()
for file in "${sources[@]}"; do
  if grep -qF "/$file\"" "$build/compile_commands.json"; then checked+=("$file"); else echo "lint: not in $build: $file"; fi
done
[ ${#checked[@]} -gt 0 ] || { echo "lint: no file of $build to check" >&2; exit 2; }
echo "lint: ${#checked[@]} files, $(clang-tidy --version | sed -n 's/.*version /clang-tidy /p' | head -n 1)"

passed_over=$(mktemp)
trap 'rm -f "$passed_over"' EXIT
export LINT_BUILD=$build LINT_PASSED_OVER=$passed_over LINT_END=0
if [ "$minutes" != 0 ]; then LINT_END=$(awk -v now="$(date +%s)" -v used=$((SECONDS - started)) -v m="$minutes" 'BEGIN { print int(now - used + 60 * m) }'); fi
status=0
printf '%s\0' "${checked[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -c '
  if [ "$LINT_END" != 0 ] && [ "$(date +%s)" -ge "$LINT_END" ]; then echo "$0" >>"$LINT_PASSED_OVER"; exit 0; fi
  out=$(clang-tidy --quiet -p "$LINT_BUILD" "$0" 2>&1) && exit 0
  printf "%s\n" "$out" | grep -vE "warnings (generated|treated as errors)|^Suppressed|^Use -header-filter"
  exit 1' || status=1
left=$(wc -l <"$passed_over")
if [ "$left" -gt 0 ]; then
  echo "lint: $left of ${#checked[@]} files were not reached in $minutes minutes:" $(sort "$passed_over")
fi
[ "$status" = 0 ] || { echo "lint: FAILED" >&2; trap - ERR; exit 1; }
echo "lint: $((${#checked[@]} - left)) files are clean, in $(human_seconds $((SECONDS - started)))"
