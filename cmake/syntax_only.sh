#!/usr/bin/env bash
# A compiler launcher that checks a file and generates no code: the object file stays empty. Preset `plain` uses it to show that every
# file compiles alone; generating code would take half as long again (docs/internals/testing.md).
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
object= previous=
for argument; do
  if [ "$previous" = -o ]; then object=$argument; fi
  previous=$argument
done
trap - ERR  # the compiler's own words say what is wrong
"$@" -fsyntax-only
: >"$object"
