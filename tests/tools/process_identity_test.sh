#!/usr/bin/env bash
# scripts/lib.sh tells a process from another one that got its number, in a namespace where the numbers can be chosen.
set -Eeuo pipefail
if [ "${1:-}" != inside ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then as_root=(--user --map-root-user); fi
  exec unshare "${as_root[@]}" --pid --fork --mount --mount-proc bash "$0" inside
fi
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
fail() { echo "process_identity: $*" >&2; exit 1; }

sleep 100 &
first=$!
remember_process "$first"
alive "$first" || fail "a process that runs is not alive"
kill "$first"
wait "$first" || true
! alive "$first" || fail "a process that ended is alive"
sleep 0.1  # a clock tick is 10 ms
echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
sleep 100 &
second=$!
[ "$second" = "$first" ] || fail "process $second did not get the number $first: nothing is tested"
kill -0 "$first" || fail "number $first is not in use"
! alive "$first" || fail "another process counts as the one that ended"
signal_process KILL "$first"
kill -0 "$second" || fail "another process was killed"
remember_process "$second"
alive "$second" || fail "the second process is not alive"
signal_process KILL "$second"
wait "$second" 2>/dev/null || true
! alive "$second" || fail "a process that was killed is alive"
