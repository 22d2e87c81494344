#!/usr/bin/env bash
# packages_test.sh BUILD_DIR PROGRAM...: cpack makes a .deb for each side and for the client, each with its files, which run from
# where the package puts them; only the worker's depends on LibTorch.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
build=$1
shift
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { echo "$*"; exit 1; }

(cd "$build" && cpack --config CPackConfig.cmake -B "$work" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }

# Sets deb, contents and depends; unpacks the package into $work/PACKAGE.
open_package() {  # PACKAGE
  deb=$(echo "$work/$1"_*.deb)
  [ -f "$deb" ] || die "no package $1: $(ls "$work")"
  contents=$(dpkg-deb -c "$deb")
  depends=$(dpkg-deb -f "$deb" Depends)
  dpkg-deb -x "$deb" "$work/$1"
  holds "usr/share/doc/$1/copyright"
}
holds() { grep -qE " \./$1( ->|$)" <<<"$contents" || die "$1 is not in $deb: $contents"; }  # REGEX
depends_on() { grep -qE "(^|, )$1" <<<"$depends" || die "${deb##*/} does not depend on $1: '$depends'"; }  # REGEX

for program in "$@"; do
  side=coordinator
  if [[ $program == atoll-@(worker|model) ]]; then side=worker; fi
  open_package "atoll-$side"
  holds "usr/bin/$program"
  "$work/atoll-$side/usr/bin/$program" --version >"$work/version" || die "$program --version failed from its package"
  echo "$program: $(head -n 1 "$work/version")"
  depends_on libc6
  if [ "$side" = coordinator ]; then
    if grep -qi torch <<<"$depends"; then die "atoll-coordinator depends on LibTorch: $depends"; fi
  else
    depends_on libopenblas
  fi
done

open_package libatoll-client1
holds 'usr/lib/.*libatoll_client\.so\.1'
holds 'usr/lib/.*atoll/atoll-engine'
if grep -q 'include\|\.cmake' <<<"$contents"; then die "libatoll-client1 has files for development: $contents"; fi
depends_on libc6
if grep -qi torch <<<"$depends"; then die "libatoll-client1 depends on LibTorch: $depends"; fi
dpkg-deb -I "$deb" shlibs | grep -q '^libatoll_client 1 libatoll-client1' || die "libatoll-client1 names no shlibs: $(dpkg-deb -I "$deb")"
"$(find "$work/libatoll-client1" -name atoll-engine)" --version >/dev/null || die "atoll-engine --version failed from its package"

open_package libatoll-client-dev
for file in usr/include/atoll/client.h usr/include/atoll/client.hpp 'usr/lib/.*libatoll_client\.so' \
  'usr/lib/.*cmake/Atoll/AtollConfig\.cmake' 'usr/lib/.*pkgconfig/atoll-client\.pc' \
  usr/share/doc/libatoll-client-dev/examples/regression.cc; do
  holds "$file"
done
depends_on 'libatoll-client1 \(= '

open_package python3-atoll
depends_on 'libatoll-client1 \(>= '
[ "$(dpkg-deb -f "$deb" Architecture)" = all ] || die "python3-atoll is not for every architecture"
version=$(dpkg-deb -f "$deb" Version)
library_dir=$(dirname "$(find "$work/libatoll-client1" -name libatoll_client.so.1)")
for try in 'importlib.metadata.version("atoll")' atoll.__version__ 'atoll._library.load().version()'; do
  said=$(cd "$work" && PYTHONPATH=$work/python3-atoll/usr/lib/python3/dist-packages LD_LIBRARY_PATH=$library_dir \
    /usr/bin/python3 -B -c "import importlib.metadata, atoll._library; print($try)")
  [ "$said" = "$version" ] || die "python3-atoll $version: $try is '$said'"
done
