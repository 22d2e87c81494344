#!/bin/bash
# Power cuts without a power switch: the run lives on an ext4 file system in a file, which lies on a file system that
# can clone files at once. A clone of the file is the disk as it is at that instant, without what is only in the page
# cache: what a machine would find after its power failed. Each clone is mounted, opened and held against what had been
# acknowledged before the cut.
#
#   power_cut.sh WRITER CUTS
#       WRITER: storage_crash_writer, which prints "ACK HEAD .." and checks with "DIR check"
#   power_cut.sh --suite SUITE CUTS [--no-sync LIBRARY]
#       SUITE: power_cut_suite, a real coordinator to which workers push. LIBRARY takes fsync away from that coordinator:
#       then something acknowledged must get lost
#
# Exit code 77, with the reason, where the machine lacks what it takes: root, loop devices, mkfs.xfs, mkfs.ext4.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
suite='' library=''
if [ "${1:-}" = --suite ]; then suite=yes; shift; fi
writer=${1:?usage: power_cut.sh WRITER CUTS, or power_cut.sh --suite SUITE CUTS [--no-sync LIBRARY]}
cuts=${2:-8}
if [ "${3:-}" = --no-sync ]; then library=${4:?--no-sync needs a library}; fi

skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "file systems can only be mounted by root"
command -v mkfs.xfs >/dev/null || skip "mkfs.xfs is missing (xfsprogs)"
command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is missing (e2fsprogs)"
[ -e /dev/loop-control ] || skip "there are no loop devices"

# A mount namespace of its own. One that another program makes meanwhile would have copies of these mounts, and the outer file
# system would stay busy until that program ends.
if [ -z "${ATOLL_POWER_CUT_INSIDE:-}" ]; then
  ATOLL_POWER_CUT_INSIDE=yes exec unshare --mount "$BASH" "$0" ${suite:+--suite} "$@"
fi

dir=$(mktemp -d /tmp/atoll-power-XXXXXX)
pid=
cleanup() {
  if [ -n "$pid" ]; then
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  fi
  # A loop device lets go of its file a moment after its own file system is unmounted.
  local mounted try
  for mounted in snap inner outer; do
    for try in {1..100}; do
      mountpoint -q "$dir/$mounted" || break
      umount "$dir/$mounted" 2>/dev/null || sleep 0.1
    done
  done
  rm -rf --one-file-system "$dir"
}
trap cleanup EXIT

mkdir "$dir/outer" "$dir/inner" "$dir/snap"
truncate -s 6G "$dir/outer.img"
mkfs.xfs -q -f -m reflink=1 "$dir/outer.img" || skip "mkfs.xfs cannot make a file system with reflinks"
mount -o loop "$dir/outer.img" "$dir/outer" 2>"$dir/why" || skip "a loop file cannot be mounted: $(cat "$dir/why")"
truncate -s 1G "$dir/outer/disk.img"
mkfs.ext4 -q -F "$dir/outer/disk.img" || skip "mkfs.ext4 fails"
mount -o loop "$dir/outer/disk.img" "$dir/inner" 2>"$dir/why" || skip "a loop file cannot be mounted: $(cat "$dir/why")"

if [ -n "$suite" ]; then
  "$writer" --dir "$dir/inner/run" --disk "$dir/outer/disk.img" --clone "$dir/outer/cut.img" --mount "$dir/snap" \
    --cuts "$cuts" ${library:+--preload "$library"} >"$dir/said" 2>&1 </dev/null &
  pid=$!
  code=0
  wait "$pid" || code=$?
  pid=
  cat "$dir/said"
  [ -n "$library" ] || exit "$code"
  [ "$code" = 1 ] || { echo "a coordinator that never syncs lost nothing (exit code $code): the cuts have no teeth"; exit 1; }
  echo "a coordinator that never syncs is found out"
  exit 0
fi

"$writer" "$dir/inner/run" >"$dir/acks" 2>"$dir/errors" &
pid=$!
failed=0
for cut in $(seq "$cuts"); do
  sleep "0.$((RANDOM % 900 + 50))"
  # Read before the cut: whatever stands here was acknowledged by then.
  acked=$(grep -a ^ACK "$dir/acks" | tail -n 1 | cut -d' ' -f2) || true
  cp --reflink=always "$dir/outer/disk.img" "$dir/outer/cut.img"
  mount -o loop "$dir/outer/cut.img" "$dir/snap"
  code=0
  head=$("$writer" "$dir/snap/run" check 2>"$dir/check") || code=$?
  umount "$dir/snap"
  rm "$dir/outer/cut.img"
  if [ "$code" != 0 ] || [ "${head:--1}" -lt "${acked:--1}" ]; then
    echo "cut $cut: acknowledged up to version ${acked:--1}, found ${head:--1} (exit code $code): $(cat "$dir/check")"
    failed=$((failed + 1))
  fi
done
if ! kill -0 "$pid" 2>/dev/null; then
  echo "the writer ended by itself: $(cat "$dir/errors")"
  failed=$((failed + 1))
fi
echo "$cuts power cuts, $failed failed; the last acknowledged version was ${acked:--1}"
exit $((failed > 0))
