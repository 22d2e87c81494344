#!/usr/bin/env bash
# wheel_test.sh BUILD_DIR: the wheel installs into an environment of Debian's Python and of another one, where it imports, says its
# version, and its engine says which coordinator it cannot reach.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
die() { echo "$*"; exit 1; }

/usr/bin/python3 -c 'import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, ("ensurepip", "pip", "setuptools", "wheel"))))'  || {
  echo "skipped: /usr/bin/python3 lacks venv, pip, setuptools or wheel (scripts/setup.sh --groups wheel)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wheel=$("$source_dir/scripts/wheel.sh" --no-build --build "$build" --out "$work/dist" | tail -n 1)
again=$("$source_dir/scripts/wheel.sh" --no-build --build "$build" --out "$work/again" | tail -n 1)
cmp "$wheel" "$again" || die "two builds of one wheel differ"
glibc=$(sed -nE 's/.*-py3-none-manylinux_2_([0-9]+)_x86_64\.whl/\1/p' <<<"$wheel")
# GPU machines run Ubuntu 22.04 (2.35) and RHEL 9 (2.34).
[ -n "$glibc" ] && [ "$glibc" -le 34 ] || die "$wheel: needs a newer glibc than 2.34, or states none"

# What Python loads may need glibc alone: another library might be another version in the process already.
engine=$build/bin/atoll-engine
if refusal=$(python3 -B "$source_dir/scripts/wheel/assemble.py" --pure "$wheel" --library "$engine" --engine "$engine" \
  --launcher "$engine" --out "$work/none" 2>&1); then
  die "a library that links others became part of a wheel"
fi
grep -qF "link it statically" <<<"$refusal" || die "$refusal"

cat >"$work/try.py" <<'PY'
import importlib.metadata
import os
import pathlib
import sys
import tempfile
import time

import atoll

assert str(pathlib.Path(atoll.__file__)).startswith(sys.prefix), atoll.__file__
version = importlib.metadata.version("atoll")
assert atoll.__version__ == version == sys.argv[1], (atoll.__version__, version)
# Libraries for the machine's glibc must not reach the engine.
os.environ["LD_LIBRARY_PATH"] = "/usr/lib/x86_64-linux-gnu"
with tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "log")
    options = {"coordinator": "127.0.0.1:1", "state_dir": f"{folder}/state", "log_file": log}
    with atoll.Client(options, [atoll.TensorSpec("weight", (2, 3))]) as client:
        deadline = time.monotonic() + 100
        while "no answer from the coordinator at 127.0.0.1:1" not in (log.read_text() if log.exists() else ""):
            assert client.next(0.1) is None and time.monotonic() < deadline, log.read_text()
        print(sys.version.split()[0], version, client.status()["phase"], log.read_text().splitlines()[-1])
        client.stop()
        event = client.next(60)
        assert event is not None and event.end_reason == atoll.EndReason.STOPPED, event
PY

version=$(sed -nE 's/^project\(atoll VERSION ([0-9.]+).*/\1/p' "$source_dir/CMakeLists.txt")
pythons=(/usr/bin/python3)
other=$(command -v python3)
if [ "$(realpath "$other")" != "$(realpath /usr/bin/python3)" ]; then pythons+=("$other"); fi
for python in "${pythons[@]}"; do
  environment=$work/venv-${#python}
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --no-index --no-deps --disable-pip-version-check "$wheel"
  (cd "$work" && "$environment/bin/python" -I try.py "$version") || die "$python: the wheel does not work"
  engine=$(find "$environment" -path '*_native/atoll/atoll-engine')
  "$engine" --version | grep -qF "$version" || die "the bundled engine does not start"
  # Every library comes from the wheel.
  foreign=$("$(dirname "$engine")/engine/ld-linux-x86-64.so.2" --inhibit-cache --library-path "$(dirname "$engine")/engine/lib" \
    --list "$(dirname "$engine")/engine/atoll-engine" | grep '=> /' | grep -vF "=> $environment" || true)
  [ -z "$foreign" ] || die "the engine uses libraries of the machine: $foreign"
done
