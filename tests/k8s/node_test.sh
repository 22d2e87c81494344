#!/usr/bin/env bash
# node_test.sh SCRIPT ARGUMENT...: runs a test that is written for node, or skips it.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
command -v node >/dev/null || { echo "skipped: node is not installed"; exit 77; }
exec node "$@"
