#!/usr/bin/env bash
# metrics_page_test.sh METRICS_PAGE PAGE: the page is what the programs' registries make of it, and shows when it is not.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
program=$1 page=$2
if ! "$program" "$page" | diff -u "$page" -; then
  echo "$page differs from the programs: scripts/renew_monitoring.sh renews it"
  exit 1
fi
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
sed 's/^| `atoll_rounds_total`.*$/| `atoll_rounds_total` | gauge | | something else |/' "$page" >"$scratch"
if "$program" "$scratch" | cmp -s "$scratch" -; then
  echo "a page that says something else would not be noticed"
  exit 1
fi
