#!/bin/sh
# A compiler launcher that checks a file and generates no code: the object file stays empty. Preset `plain` uses it to show that every
# file compiles alone; generating code would take half as long again (docs/internals/testing.md).
object=
previous=
for argument; do
  if [ "$previous" = -o ]; then object=$argument; fi
  previous=$argument
done
"$@" -fsyntax-only || exit
: >"$object"
