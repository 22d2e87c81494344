#!/usr/bin/env bash
# installed_client_test.sh BUILD_DIR: the installed client library serves a project of its own. The example is built against the
# installed files, by CMake and by pkg-config alone, and two of it train with a real coordinator to the end of the run. Then the
# folder moves, and all of it works from the new place.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "$1" && pwd)
bin=$build/bin

work=$(mktemp -d)
started=()
cleanup() {
  local pid
  for pid in "${started[@]}"; do signal_process KILL "$pid"; done
  rm -rf "$work"
}
trap cleanup EXIT
die() { echo "$*"; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; die "failed: $*"; }; }
has() { grep -qF -- "$2" <<<"$1" || die "expected '$2' in: $1"; }

cat >"$work/run.yaml" <<'YAML'
run: {name: regression, workers: 2, rounds: 30}
model: external
inner: {steps: 20, learning_rate: 0.1, batch: 32}
outer: {optimizer: nesterov, learning_rate: 1.0, momentum: 0.3}
YAML

# Sets `coordinator` and `address`.
start_coordinator() {  # CONFIG FOLDER
  mkdir "$2"
  "$bin/atoll-coordinator" --config "$1" --data-dir "$2/coordinator" --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 \
    --metrics-listen "" --web-listen "" --port-file "$2/ports.json" >"$2/coordinator.log" 2>&1 &
  coordinator=$!
  started+=("$coordinator")
  remember_process "$coordinator"
  until [ -s "$2/ports.json" ]; do
    alive "$coordinator" || { tail -n 20 "$2/coordinator.log"; die "the coordinator did not start"; }
    sleep 0.1
  done
  address=$(sed -nE 's/.*"data": *"([^"]*)".*/\1/p' "$2/ports.json")
}
end_coordinator() {
  signal_process TERM "$coordinator"
  wait "$coordinator" || die "the coordinator ended with $?"
}

# Two of PROGRAM train until the run has ended; both must leave with code 0, and with a loss far below the first.
train() {  # NAME PROGRAM
  local name=$1 program=$2 folder=$work/$1 i code workers=()
  start_coordinator "$work/run.yaml" "$folder"
  for i in 0 1; do
    "$program" "$address" "w$i" "$folder/w$i" >"$folder/w$i.out" 2>"$folder/w$i.log" &
    workers+=($!)
    started+=($!)
    remember_process $!
  done
  for i in 0 1; do
    code=0
    wait "${workers[$i]}" || code=$?
    [ $code -eq 0 ] || { tail -n 20 "$folder"/*.out "$folder"/*.log; die "$name: worker $i ended with $code"; }
    awk -v who="$name, worker $i" '/^first loss/ { first = $3 } /^last loss/ { last = $3 }
      END { print who ": loss " first " -> " last; exit !(first > 50 && last < 0.5) }' "$folder/w$i.out" ||
      { cat "$folder/w$i.out"; die "$name: worker $i did not learn"; }
  done
  end_coordinator
}

install_to() {  # PREFIX
  local component
  for component in client client_dev; do quietly cmake --install "$build" --prefix "$1" --component "$component"; done
}
pkgconfig_dir() { dirname "$(find "$1" -name atoll-client.pc)"; }  # PREFIX

# CMAKE_PREFIX_PATH alone finds the package; nothing of the source or build folder may help.
by_cmake() {  # NAME PREFIX OPTION...
  local name=$1 prefix=$2
  shift 2
  quietly cmake -S "$prefix/share/doc/libatoll-client-dev/examples" -B "$work/$name-build" -DCMAKE_PREFIX_PATH="$prefix" "$@"
  quietly cmake --build "$work/$name-build"
}
by_pkg_config() {  # NAME PREFIX COMPILER OPTION...
  local name=$1 prefix=$2 flags
  shift 2
  mkdir "$work/$name-build"
  flags=$(PKG_CONFIG_PATH=$(pkgconfig_dir "$prefix") pkg-config --cflags --libs atoll-client)
  # shellcheck disable=SC2086
  quietly "$@" "$prefix/share/doc/libatoll-client-dev/examples/regression.cc" -o "$work/$name-build/regression" $flags
}

prefix=$work/first/prefix
install_to "$prefix"
if grep -rnIF -e "$work" -e "$build" -e "$source_dir" "$prefix"; then die "an installed file names a path of this machine"; fi
version=$(sed -nE 's/^project\(atoll VERSION ([0-9.]+).*/\1/p' "$source_dir/CMakeLists.txt")
[ "$(PKG_CONFIG_PATH=$(pkgconfig_dir "$prefix") pkg-config --modversion atoll-client)" = "$version" ] || die "pkg-config has another version"
needed=$(readelf -dW "$(dirname "$(pkgconfig_dir "$prefix")")/libatoll_client.so.1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -vE '^(libc\.so|ld-linux)' <<<"$needed"; then die "the library needs more than the C library"; fi

by_cmake cmake "$prefix"
train cmake "$work/cmake-build/regression"

by_pkg_config pkg-config "$prefix" g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror
if command -v clang++ >/dev/null; then
  by_pkg_config clang "$prefix" clang++ -std=c++20 -Wall -Wextra -Wpedantic -Werror
else
  echo "clang++ is not installed: not tried"
fi

# The promises of the C++ header. The program finds the library by the rpath of docs/reference/cpp_client.md.
sed 's/workers: 2, rounds: 30/workers: 1, rounds: 100000/' "$work/run.yaml" >"$work/long.yaml"
quietly g++ -std=c++17 -pthread "$source_dir/tests/packaging/wrapper_cases.cc" -o "$work/cases" \
  $(PKG_CONFIG_PATH=$(pkgconfig_dir "$prefix") pkg-config --cflags --libs atoll-client) \
  -Wl,-rpath,"$(PKG_CONFIG_PATH=$(pkgconfig_dir "$prefix") pkg-config --variable=libdir atoll-client)"
start_coordinator "$work/long.yaml" "$work/cases-run"
"$work/cases" "$address" "$work/cases-run" || die "the C++ header breaks a promise"
end_coordinator

# A newer version, and another component, are refused with a reason.
for wanted in "99.0" "0.2 COMPONENTS worker"; do
  mkdir -p "$work/refused"
  printf 'cmake_minimum_required(VERSION 3.19)\nproject(x LANGUAGES CXX)\nfind_package(Atoll %s REQUIRED)\n' "$wanted" >"$work/refused/CMakeLists.txt"
  if refusal=$(cmake -S "$work/refused" -B "$work/refused/build" -DCMAKE_PREFIX_PATH="$prefix" 2>&1); then die "find_package(Atoll $wanted) succeeded"; fi
  rm -rf "$work/refused"
done
has "$refusal" "Atoll has no component 'worker'"

moved=$work/second/place
mkdir "$work/second"
mv "$prefix" "$moved"
by_cmake moved "$moved"
train moved "$work/moved-build/regression"
# A program that was built before the move finds the library by the loader's path, and the library its engine.
library_dir=$(dirname "$(pkgconfig_dir "$moved")")
export LD_LIBRARY_PATH=$library_dir
train pkg-config "$work/pkg-config-build/regression"
if [ -d "$work/clang-build" ]; then train clang "$work/clang-build/regression"; fi

# Without its engine, the library says where it looked.
mv "$library_dir/atoll/atoll-engine" "$work/engine"
if said=$("$work/pkg-config-build/regression" 127.0.0.1:1 w0 "$work/none" 2>&1); then die "it ran without an engine"; fi
has "$said" "$library_dir"
has "$said" ATOLL_ENGINE
if refusal=$(cmake -S "$moved/share/doc/libatoll-client-dev/examples" -B "$work/no-engine" -DCMAKE_PREFIX_PATH="$moved" 2>&1); then
  die "find_package succeeded without the engine"
fi
has "$refusal" "Install libatoll-client1"
