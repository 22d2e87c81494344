#!/usr/bin/env bash
# What scripts print while they build: the steps that are done of all and the time so far, and no guess of the time left.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Steps from the compiler cache at first: an estimate by them would promise the end at once.
fast_build() {
  echo "[90/100] Building x"
  local i
  for ((i = 0; i < 600; i++)); do [ ! -s "$folder/said" ] || return 0; sleep 0.1; done
}
ATOLL_PROGRESS_S=1 run_with_progress "build" "$folder/log" fast_build >"$folder/said"
said=$(<"$folder/said")
echo "$said"
grep -qE '^build: 90 of 100 steps done, [1-9][0-9]* s$' <<<"$said" || { echo "no line of progress" >&2; exit 1; }
! grep -qE 'left|%' <<<"$said" || { echo "promises what it does not know" >&2; exit 1; }
status=0
run_with_progress "build" "$folder/log" false || status=$?
[ "$status" = 1 ] || { echo "the build's exit code 1 became $status" >&2; exit 1; }
