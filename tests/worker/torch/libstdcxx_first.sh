#!/usr/bin/env bash
# A program with LibTorch must load the system's libstdc++ before it: PyTorch's wheels export std::filesystem of an older one,
# and std::filesystem::remove_all of theirs ends in a segmentation fault.
#
# Usage: libstdcxx_first.sh PROGRAM...     Exit codes: 0 each does, 1 one does not, 2 wrong usage.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
[ $# -ge 1 ] || { echo "usage: libstdcxx_first.sh PROGRAM..." >&2; exit 2; }

result=0
for program in "$@"; do
  # In the order in which the loader looks for symbols.
  first=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(libstdc++\|libtorch\|libc10\)[^]]*\]/\1/p' | awk 'NR == 1')
  echo "$program: $first first"
  if [ "$first" != libstdc++ ]; then
    echo "$program: loads ${first:-neither libstdc++ nor LibTorch} first, not libstdc++" >&2
    result=1
  fi
done
exit $result
