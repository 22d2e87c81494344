#!/usr/bin/env bash
# Makes the virtual environment of scripts/interop.txt, scripts/harness.txt, scripts/nvcc.txt or bench/python/peers.txt. See --help.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/interop.sh [--harness | --peers | --nvcc] [--check | --python]

Makes a virtual environment with the packages of scripts/interop.txt, which some tests of the Python package need, and keeps it up
to date. If nothing has changed, it does nothing. It needs python3-venv (scripts/setup.sh --groups interop installs it first).

The environment is the one of $ATOLL_INTEROP_PYTHON, the path of its Python. Default: atoll/interop/bin/python in
$XDG_CACHE_HOME, else ~/.cache; without a home folder, /var/tmp/atoll-interop-UID/bin/python. The script changes only an
environment that it made.

  --harness   another environment instead: the packages of scripts/harness.txt (lm-evaluation-harness), for tests that compare scores.
              Its Python is that of $ATOLL_HARNESS_PYTHON; the defaults have "harness" for "interop"
  --peers     another environment instead: the packages of bench/python/peers.txt, for bench/python/peers.py. Its Python is that of
              $ATOLL_PEERS_PYTHON; the defaults have "peers" for "interop"
  --nvcc      another environment instead: the packages of scripts/nvcc.txt, CUDA's compiler (0.1 GB), for the test of the kernels'
              resources. Its Python is that of $ATOLL_NVCC_PYTHON; the defaults have "nvcc" for "interop"
  --check     change nothing; exit with 1 if the environment is missing or out of date
  --python    print the path of its Python, and nothing else
  -h, --help  this text

Exit codes: 0 done, 1 something failed, 2 wrong usage.
HELP
}

say() { echo "interop: $*"; }
die() { echo "interop: $2" >&2; exit "$1"; }

mode=make
name=interop list=scripts/interop.txt variable=ATOLL_INTEROP_PYTHON modules="torch, torchdata, transformers, accelerate, lightning"
while [ $# -gt 0 ]; do
  case "$1" in
    --harness) name=harness list=scripts/harness.txt variable=ATOLL_HARNESS_PYTHON
      modules="lm_eval, torch, transformers, datasets, aiohttp, tenacity" ;;
    --peers) name=peers list=bench/python/peers.txt variable=ATOLL_PEERS_PYTHON modules="torch, torchft.local_sgd, hivemind" ;;
    --nvcc) name=nvcc list=scripts/nvcc.txt variable=ATOLL_NVCC_PYTHON modules=nvidia ;;
    --check) mode=check ;;
    --python) mode=python ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die 2 "unknown option '$1'" ;;
  esac
  shift
done

cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
folder=${cache:+$cache/atoll/$name}
python=${!variable:-${folder:-/var/tmp/atoll-$name-$(id -u)}/bin/python}
[ "$mode" != python ] || { echo "$python"; exit 0; }
[[ $python == /*/bin/python* ]] || die 2 "$variable is '$python'; name the Python of a virtual environment: /DIR/bin/python"
folder=${python%/bin/*}

# Of one that this script made: what it was made for.
stamp=$folder/.atoll-$name
wanted=$(sha256sum <"$list" | cut -d ' ' -f 1)
if [ -x "$python" ] && [ -f "$stamp" ] && [ "$(<"$stamp")" = "$wanted" ]; then
  say "up to date: $python"
  exit 0
fi
[ "$mode" != check ] || { say "missing or out of date: $python"; exit 1; }
if [ -e "$folder" ] && [ ! -f "$stamp" ] && [ -n "$(ls -A "$folder")" ]; then
  die 1 "$folder has files, and this script did not make it. Install $list there yourself, \
or name another place in $variable"
fi

start=$SECONDS
say "installing into $folder: $(sed -E '/^#/d; s/(\[.*)?==.*//' "$list" | paste -sd ' ')"
if [ "$name" = nvcc ]; then
  say "the download takes 0.1 GB"
else
  say "the download takes 0.4 GB with a CPU build of torch, and about 3 GB with the registry's build for CUDA"
fi
mkdir -p "$folder"
echo "unfinished" >"$stamp"
if ! "$python" -m pip --version >/dev/null 2>&1; then
  # Debian's Python is the one that python3-venv belongs to.
  /usr/bin/python3 -m venv "$folder" || die 1 "cannot make a virtual environment; run scripts/setup.sh --groups interop"
fi
"$python" -m pip install --quiet --disable-pip-version-check -r "$list" ||
  die 1 "pip failed; see its message above, then run this script again"
"$python" -c "import $modules" >/dev/null ||
  die 1 "the packages do not load; delete $folder and run this script again"
echo "$wanted" >"$stamp"
say "installed in $((SECONDS - start)) s, $(du -sh "$folder" | cut -f 1): $python"
