#!/usr/bin/env bash
# packages_test.sh BUILD_DIR PROGRAM...: cpack makes one .deb for each side, each with its programs, which run from where
# the package puts them; only the worker's depends on LibTorch.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
build=$1
shift
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { echo "$*"; exit 1; }

(cd "$build" && cpack --config CPackConfig.cmake -B "$work" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }

for program in "$@"; do
  side=coordinator
  if [ "$program" = atoll-worker ]; then side=worker; fi
  deb=$(echo "$work/atoll-${side}"_*.deb)
  [ -f "$deb" ] || die "no package atoll-$side: $(ls "$work")"
  contents=$(dpkg-deb -c "$deb")
  grep -qE " \./usr/bin/$program$" <<<"$contents" || die "$program is not in $deb"
  grep -qE " \./usr/share/doc/atoll-$side/copyright$" <<<"$contents" || die "$deb has no copyright file"
  dpkg-deb -x "$deb" "$work/$side"
  "$work/$side/usr/bin/$program" --version >"$work/version" || die "$program --version failed from its package"
  echo "$program: $(head -n 1 "$work/version")"
  depends=$(dpkg-deb -f "$deb" Depends)
  grep -q 'libc6' <<<"$depends" || die "atoll-$side: no dependencies were found: '$depends'"
  if [ "$side" = coordinator ]; then
    if grep -qi torch <<<"$depends"; then die "atoll-coordinator depends on LibTorch: $depends"; fi
  else
    grep -q 'libopenblas' <<<"$depends" || die "atoll-worker does not depend on OpenBLAS: $depends"
  fi
done
