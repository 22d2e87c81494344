#!/usr/bin/env bash
# exports_test.sh LIBRARY: libatoll_client stands on the C library alone, exports its interface and nothing else, and needs
# no newer C library than that of RHEL 9.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
library=$1
failed=0
command -v readelf >/dev/null || { echo "skipped: readelf (binutils) is not installed"; exit 77; }

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|ld-linux[-a-z0-9_]*\.so\.[0-9])$' || true)
if [ -n "$needed" ]; then
  echo "$library needs $needed; it may need libc.so.6 only" >&2
  failed=1
fi

symbols=$(readelf --dyn-syms -W "$library")
exported=$(awk '$7 ~ /^[0-9]+$/ && $5 ~ /GLOBAL|WEAK/ {sub(/@.*/, "", $8); print $8}' <<<"$symbols" | grep -v '^ATOLL_1$' | sort)
declared=$(grep -oE '\batl_[a-z_]+\(' "$(dirname "${BASH_SOURCE[0]}")/../../../client/include/atoll/client.h" | tr -d '(' |
  grep -vE '^atl_(next|answer)$' | sort -u)
declared=$(printf '%s\natl_next\natl_answer\n' "$declared" | sort -u)
if [ "$exported" != "$declared" ]; then
  echo "$library: exported (<) and declared in atoll/client.h (>):" >&2
  diff <(echo "$exported") <(echo "$declared") >&2 || true
  failed=1
fi

newest=$(grep -oE 'GLIBC_[0-9.]+' <<<"$symbols" | sed 's/GLIBC_//' | sort -V | tail -n 1)
if [ "$(printf '%s\n2.34\n' "$newest" | sort -V | tail -n 1)" != 2.34 ]; then
  echo "$library needs glibc $newest; 2.34 (RHEL 9) is the newest that it may need:" >&2
  grep -F "GLIBC_$newest" <<<"$symbols" >&2
  failed=1
fi
if [ $failed -eq 0 ]; then echo "$library: $(wc -l <<<"$exported") functions, glibc $newest or newer"; fi
exit $failed
