#!/usr/bin/env bash
# command_line_test.sh ENGINE: started by hand, the engine says that it is not for users, and ends.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
engine=$1
"$engine" --help | grep -q "not for"
"$engine" --version | grep -q "^atoll-engine "
code=0
said=$("$engine" 2>&1 3>&- 4>&- 5>&- 6>&-) || code=$?
if [ $code -ne 2 ] || ! grep -q "started by libatoll_client" <<<"$said"; then
  echo "without its library: exit code $code: $said" >&2
  exit 1
fi
