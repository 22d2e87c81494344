#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the sources.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/lint.sh [--changed [REVISION] | --unchecked | FILE...] [--record] [--minutes N] [--build DIR]

Runs clang-tidy over the given files, or over all of our .cc files, one per core at a time. For a header it checks a .cc file
that includes it.

  --changed [REV]  check only files that differ from REV, including uncommitted changes (default: HEAD), and show only
                   warnings in them. REV `clean` means the file contents listed in tests/style/lint_clean.txt (clean) and
                   tests/style/lint_unchecked.txt (never checked). Files of the newest commits come first
  --unchecked      check only the files listed in tests/style/lint_unchecked.txt
  --record         add clean files to lint_clean.txt and remove them from lint_unchecked.txt
  --minutes N      start no file after N minutes; print the files that were not checked
  --build DIR      build folder with compile_commands.json (default: build/lint, which is only configured)
  -h, --help       this text

Exit codes: 0 all files are clean, 1 warnings, 2 wrong usage, 3 no clang-tidy or no build folder, 4 clean, but not all checked.
HELP
}

changed=no revision=HEAD build='' minutes=0 record=no
clean_list=tests/style/lint_clean.txt unchecked_list=tests/style/lint_unchecked.txt
files=()
while [ $# -gt 0 ]; do
  case "$1" in
    --changed) changed=yes; case "${2:-}" in ''|-*|*.cc|*.h) ;; *) revision=$2; shift ;; esac ;;
    --unchecked) changed=yes revision=unchecked ;;
    --record) record=yes ;;
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

# A separate build folder: others may use g++'s precompiled headers or compile files in batches.
if [ -z "$build" ]; then
  build=build/lint
  mkdir -p "$build"
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DATOLL_PCH=OFF -DATOLL_UNITY=OFF >"$build/configure.log" 2>&1 ||
    { tail -n 20 "$build/configure.log" >&2; exit 3; }
  # Generate only the protobuf code; compile nothing.
  mapfile -t generated < <(ninja -C "$build" -t targets all | sed -nE 's/^([^ ]+\.pb\.h): .*/\1/p' | sort -u)
  ninja -C "$build" "${generated[@]}" >"$build/generate.log" 2>&1 || { tail -n 20 "$build/generate.log" >&2; exit 3; }
fi
[ -f "$build/compile_commands.json" ] || { echo "lint: no compile_commands.json in $build" >&2; exit 3; }

folders=(common core storage protos monitoring server client worker cli bench tests)
ours="^($(IFS='|'; echo "${folders[*]}"))/.*\.(cc|h)$"
all_files() { find "${folders[@]}" -name '*.cc' -o -name '*.h' | sort; }

# "HASH FILE" for each file of standard input: git's hash of what it holds now, so a list of them needs no history.
hashes() {
  local names
  names=$(cat)
  paste -d ' ' <(git hash-object --stdin-paths <<<"$names" | cut -c 1-16) <(echo "$names")
}

# Files of standard input, those that were committed last first; uncommitted ones before them.
newest_first() {
  awk 'NR == FNR { if (!($0 in rank)) rank[$0] = NR; next } { print ($0 in rank ? rank[$0] : 0) "\t" $0 }' \
    <({ git ls-files -m; git log --format= --name-only; }) - | sort -s -n -k 1,1 | cut -f 2-
}

# Both lists hold the hash of .clang-tidy too: with other checks every content is unknown again.
of_these_checks() { grep -qxF "$(echo .clang-tidy | hashes)" "$1" 2>/dev/null; }  # LIST

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$clean_list" "$unchecked_list"
{ all_files; echo .clang-tidy; } | hashes >"$work/now"

if [ "$changed" = yes ] && { [ "$revision" = clean ] || [ "$revision" = unchecked ]; }; then
  for list in "$clean_list" "$unchecked_list"; do
    of_these_checks "$list" || echo "lint: $list does not have the hash of this .clang-tidy, so its files count as unchecked" >&2
  done
  if of_these_checks "$unchecked_list"; then grep -v ' \.clang-tidy$' "$unchecked_list"; fi >"$work/unchecked" || true
  { if of_these_checks "$clean_list"; then cat "$clean_list"; fi; cat "$work/unchecked"; } >"$work/known"
  grep -xFf "$work/now" "$work/unchecked" >"$work/unchecked_now" || true
  if [ "$revision" = clean ]; then
    all_files | hashes | { grep -vxFf "$work/known" || true; }
    if [ -s "$work/unchecked_now" ]; then
      echo "lint: $(wc -l <"$work/unchecked_now") files have not changed and were never checked: $unchecked_list" >&2
    fi
  else
    cat "$work/unchecked_now"
  fi | cut -d ' ' -f 2 | newest_first >"$work/files"
  mapfile -t files <"$work/files"
elif [ "$changed" = yes ]; then
  git cat-file -e "$revision^{commit}" 2>/dev/null || { echo "lint: this clone lacks revision $revision" >&2; exit 2; }
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$revision"; git ls-files -o --exclude-standard; } |
    grep -E "$ours" | sort -u || true)
elif [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(all_files | grep '\.cc$')
fi
if [ ${#files[@]} -eq 0 ] && [ "$revision" = unchecked ]; then echo "lint: $unchecked_list names no file"; exit 0; fi
[ ${#files[@]} -gt 0 ] || { echo "lint: nothing changed since $revision"; exit 0; }

# "HEADER SOURCE" for each header of standard input: the .cc file that includes it over the fewest other headers, if possible one
# that this build compiles. Many headers of interfaces are included by headers only.
includers() {
  cat >"$work/headers"
  { grep -rE --include='*.cc' --include='*.h' '^ *# *include "' "${folders[@]}" || true; } | sort |
    awk -F '"' -v top="$PWD/" -v commands="$build/compile_commands.json" -v headers="$work/headers" '
      function includer(header,    queue, seen, first, last, count, from, i, other) {
        queue[last = 1] = header
        for (first = 1; first <= last; first++) {
          count = split(by[queue[first]], from, " ")
          for (i = 1; i <= count; i++) {
            if (from[i] in compiled) return from[i]
            if (from[i] in seen) continue
            seen[from[i]]
            if (from[i] ~ /\.h$/) queue[++last] = from[i]
            else if (other == "") other = from[i]
          }
        }
        return other
      }
      { file = $1; sub(/:.*/, "", file); by[$2] = by[$2] " " file }
      END {
        while ((getline <commands) > 0) if ($2 == "file" && index($4, top) == 1) compiled[substr($4, length(top) + 1)]
        while ((getline <headers) > 0) if (includer($0) != "") print $0, includer($0)
      }'
}

# In place of a header: its own .cc file, or one that includes it. stands_for: a line "SOURCE FILE" for each file.
for file in "${files[@]}"; do
  case "$file" in *.h) [ -f "${file%.h}.cc" ] || echo "$file" ;; esac
done | includers >"$work/includers"
for file in "${files[@]}"; do
  source=$file
  case "$file" in
    *.h)
      source=${file%.h}.cc
      if [ ! -f "$source" ]; then
        source=$(awk -v header="$file" '$1 == header { print $2 }' "$work/includers")
        if [ -z "$source" ]; then echo "lint: no .cc file includes $file" >&2; continue; fi
      fi ;;
  esac
  echo "$source $file"
done >"$work/stands_for"
mapfile -t sources < <(cut -d ' ' -f 1 "$work/stands_for" | awk '!seen[$0]++')

# A file that this build does not compile (the LibTorch worker with ATOLL_WITH_TORCH=OFF) cannot be checked with it.
checked=()
for file in "${sources[@]}"; do
  if grep -qF "/$file\"" "$build/compile_commands.json"; then checked+=("$file"); else echo "lint: not in $build: $file"; fi
done
if [ ${#checked[@]} -eq 0 ] && [ "$changed" = yes ]; then echo "lint: nothing to check in $build"; exit 0; fi
[ ${#checked[@]} -gt 0 ] || { echo "lint: no file of $build to check" >&2; exit 2; }
echo "lint: ${#checked[@]} files, $(clang-tidy --version | sed -n 's/.*version /clang-tidy /p' | head -n 1)"

# The headers of this clone, and none beside it: .clang-tidy cannot know where the clone lies.
headers="^$(sed 's/[][\.*^$+?(){}|]/\\&/g' <<<"$PWD")/($(IFS='|'; echo "${folders[*]}"))/[^.]*\\.h\$"
export LINT_HEADERS=$headers LINT_BUILD=$build LINT_WORK=$work LINT_END=0
touch "$work/passed_over" "$work/clean"
# Of what changed, only what is found in it: a header's .cc file may be one that nobody has checked. Errors count in all of our
# files, and where they end the reading. clang 14 finds others in headers of LibTorch and of libstdc++ 12, which g++ compiles.
if [ "$changed" = yes ]; then printf '%s\n' "${files[@]}" | sed "s|^|$PWD/|; s|\$|:|"; else echo "$PWD/"; fi >"$work/wanted"
if [ "$minutes" != 0 ]; then LINT_END=$(awk -v now="$(date +%s)" -v used=$((SECONDS - started)) -v m="$minutes" 'BEGIN { print int(now - used + 60 * m) }'); fi
status=0
printf '%s\0' "${checked[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -c '
  if [ "$LINT_END" != 0 ] && [ "$(date +%s)" -ge "$LINT_END" ]; then echo "$0" >>"$LINT_WORK/passed_over"; exit 0; fi
  out=$(clang-tidy --quiet --header-filter="$LINT_HEADERS" -p "$LINT_BUILD" "$0" 2>&1) && { echo "$0" >>"$LINT_WORK/clean"; exit 0; }
  printf "%s\n" "$out" | grep -E "^/.*: (warning|error): " >"$LINT_WORK/found.$$"
  if [ -s "$LINT_WORK/found.$$" ] && ! grep -qF -f "$LINT_WORK/wanted" "$LINT_WORK/found.$$" &&
    ! grep -F clang-diagnostic-error "$LINT_WORK/found.$$" | grep -qF -e "$PWD/" -e "file not found" -e "too many errors"; then
    echo "$0" >>"$LINT_WORK/clean"
    exit 0
  fi
  printf "%s\n" "$out" | grep -vE "warnings (generated|treated as errors)|^Suppressed|^Use -header-filter"
  exit 1' || status=1
if [ "$record" = yes ]; then
  # What was clean before and is unchanged stays on the list. With other checks nobody has checked it.
  { of_these_checks "$clean_list" || cat "$clean_list"; cat "$unchecked_list"; } | { grep -v ' \.clang-tidy$' || true; } >"$work/not_checked"
  if ! of_these_checks "$clean_list"; then : >"$clean_list"; fi
  { awk 'NR == FNR { clean[$0]; next } $1 in clean { print $2 } END { print ".clang-tidy" }' "$work/clean" "$work/stands_for" |
      awk 'NR == FNR { add[$0]; next } $2 in add' - "$work/now"
    grep -xFf "$work/now" "$clean_list" || true; } | sort -u -k 2 >"$work/list"
  cp "$work/list" "$clean_list"
  { grep -xFf "$work/now" "$work/not_checked" | grep -vxFf "$clean_list" || true; grep ' \.clang-tidy$' "$clean_list"; } |
    sort -u -k 2 >"$work/list"
  cp "$work/list" "$unchecked_list"
  echo "lint: $clean_list names $(($(wc -l <"$clean_list") - 1)) of $(($(wc -l <"$work/now") - 1)) files"
  echo "lint: $unchecked_list names $(($(wc -l <"$unchecked_list") - 1))"
fi
left=$(wc -l <"$work/passed_over")
[ "$status" = 0 ] || { echo "lint: FAILED" >&2; trap - ERR; exit 1; }
echo "lint: $((${#checked[@]} - left)) files are clean, in $(human_seconds $((SECONDS - started)))"
if [ "$left" -gt 0 ]; then
  echo "lint: $left files were not reached in $minutes minutes:"
  sort "$work/passed_over" | sed 's/^/lint:   /'
  trap - ERR
  exit 4
fi
