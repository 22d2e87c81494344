#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests with ctest.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/test.sh [--full | --ci] [options]

Without options, runs scripts/setup.sh, builds preset release, and runs every test that takes less than about half a minute.
On a new machine this takes about 20 minutes on two cores.

  --ci           run the same as .ci/run: the README's commands, word for word (they include the tests of preset release,
                 also those labelled slow), the benchmarks' build, clang-tidy over changed files, ASan+UBSan over the unit
                 tests of what parses, computes and stores, TSan over the threaded tests
  --full         also run the tests labelled long (convergence, crash loops, packages), and each decoder of foreign
                 bytes under libFuzzer for 60 s (ATOLL_FUZZ_SECONDS)
  --jobs N       compile N files at a time (default: the number of cores, fewer if memory is short)
  --tests REGEX  run only tests whose names match, and none of the README's commands
  --junit DIR    write one JUnit file for each stage into DIR
  --no-setup     do not look for missing packages
  -h, --help     this text

A skipped test fails the run unless tests/allowed_skips.txt lists it with a reason. At the end the script prints the time of
each stage; docs/internals/testing.md has the budget. The builds are in build/release, build/asan, build/tsan and build/fuzz;
a second call compiles only changed files.
Exit codes: 0 all tests passed, 1 a test or the build failed, 2 wrong usage.
HELP
}

die() { echo "test: $1" >&2; exit 2; }

mode=quick setup=yes junit= regex= jobs=
while [ $# -gt 0 ]; do
  case "$1" in
    --ci) mode=ci ;;
    --full) mode=full ;;
    --no-setup) setup=no ;;
    --jobs|--tests|--junit)
      [ $# -ge 2 ] || die "$1 needs a value"
      case "$1" in --jobs) jobs=$2 ;; --tests) regex=$2 ;; --junit) junit=$2 ;; esac
      shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die "unknown option '$1'" ;;
  esac
  shift
done

jobs=${jobs:-$(compile_jobs)}
slots=$((2 * $(nproc)))  # for ctest: a test says how many half processors it takes (cmake/AtollTargets.cmake)
if [ -n "$junit" ]; then
  mkdir -p "$junit"
  junit=$(cd "$junit" && pwd)
fi

failed=() began=$(date +%s)
share_compiler_cache "$PWD"
for name in "${!GTEST_@}"; do unset "$name"; done  # a filter of the user's shell would leave tests out without a word

# With --ci, the README's second command runs this script again without options. These variables pass the settings to it and
# the times of its stages back.
strict=${ATOLL_TEST_STRICT:-no}
junit=${junit:-${ATOLL_TEST_JUNIT:-}}
times=${ATOLL_STAGE_TIMES:-} indent=""
if [ "$mode" != quick ]; then strict=yes; fi
if [ -n "$times" ]; then
  indent="  "
  trap end_beside EXIT
else
  times=$(mktemp)
  trap 'end_beside; print_times; rm -f "$times"' EXIT
fi

record() { printf '%s\t%s\t%s\n' "$indent$1" "$2" "$3" >>"$times"; }  # STAGE SECONDS RESULT

print_times() {
  # Stages of a command that is a stage itself are indented and not counted twice.
  echo "test: stage                      seconds  result"
  awk -F '\t' '{ printf "test:   %-24s %7d  %s\n", $1, $2, $3; if ($1 !~ /^  /) all += $2 }
    END { printf "test:   %-24s %7d\n", "all", all }' "$times"
}

build() {  # build PRESET [CMAKE-OPTION...] [-- TARGET...]: a build that fails ends everything
  local preset=$1 log=build/$1.log start=$SECONDS options=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  if [ $# -gt 0 ]; then targets=(--target "${@:2}"); fi
  mkdir -p build
  echo "test: building preset $preset with $jobs jobs; this takes some minutes the first time (log: $log)"
  : >"$log"
  if ! cmake --preset "$preset" "${options[@]}" >>"$log" 2>&1 ||
    ! run_with_progress "test: build $preset" "$log" cmake --build --preset "$preset" --parallel "$jobs" "${targets[@]}"; then
    grep -nE -A8 'error:|Error|FAILED' "$log" | head -n 80 >&2 || true
    tail -n 20 "$log" >&2
    record "build $preset" $((SECONDS - start)) FAILED
    echo "test: the build of preset $preset failed; the whole output is in $log" >&2
    exit 1
  fi
  record "build $preset" $((SECONDS - start)) passed
  echo "test: built preset $preset in $(human_seconds $((SECONDS - start)))"
}

run() {  # run NAME PRESET CTEST-ARGUMENTS...: a failing stage is remembered, and the next ones still run
  local name=$1 preset=$2 start=$SECONDS result=passed report
  report=$PWD/build/$preset/junit-$1.xml
  shift 2
  local args=(--preset "$preset" --output-on-failure --output-junit "$report" "$@")
  if [ -n "$regex" ]; then args+=(-R "$regex" --no-tests=ignore); else args+=(--no-tests=error); fi
  echo "test: stage $name"
  rm -f "$report"
  ctest "${args[@]}" </dev/null || result=FAILED
  if [ -f "$report" ]; then
    if [ -n "$junit" ]; then cp "$report" "$junit/$name.xml"; fi
    local skips=(--junit "$report" --log "build/$preset/Testing/Temporary/LastTest.log")
    if [ "$strict" = yes ]; then skips+=(--strict); fi
    python3 -B tests/tools/check_skips.py "${skips[@]}" || result=FAILED
  fi
  record "tests $name" $((SECONDS - start)) "$result"
  if [ "$result" != passed ]; then failed+=("$name"); fi
}

command_stage() {  # command_stage NAME COMMAND...
  local name=$1 start=$SECONDS result=passed
  shift
  echo "test: stage $name: $*"
  "$@" </dev/null || result=FAILED
  record "$name" $((SECONDS - start)) "$result"
  if [ "$result" != passed ]; then failed+=("$name"); fi
}

# The threaded folders: what TSan can say something about, and all that is built for it. Tests that other programs take part
# in (a Prometheus, a browser) would measure those; the metrics page and its rules have no threads of ours.
threaded='^(common|storage|server|sync|monitoring)$'
threaded_targets=(common_tests storage_tests server_tests access_tests sync_tests monitoring_tests
  launch_test launch_kubernetes_test server_rpc_core_test server_rpc_race_test server_config_change_test)

# clang-tidy over files whose contents are on neither list of tests/style: those that changed since the lists were recorded.
lint_log=build/lint.log lint_code=build/lint.code
lint() {  # LINT-ARGUMENT...
  local code=0
  rm -f "$lint_code"
  ./scripts/lint.sh "$@" >"$lint_log" 2>&1 </dev/null || code=$?
  echo "$code" >"$lint_code"
}

report_lint() {  # its stage is the time that CI waits for it. Files that it did not reach are no failure, and not passed either
  local result=passed code start=$SECONDS
  echo "test: stage lint"
  while [ ! -s "$lint_code" ] && beside_runs; do sleep 1; done
  code=$(cat "$lint_code" 2>/dev/null || echo none)
  cat "$lint_log"
  case $code in
    0) ;;
    4) result="in part" ;;
    *) echo "test: clang-tidy ended with exit code $code"; result=FAILED failed+=(lint) ;;
  esac
  record lint $((SECONDS - start)) "$result"
}

# What CI does beside the tests of preset release, with the processor time that they leave: clang-tidy, then the builds for the
# sanitizers. The stages of these builds later do what is left, and report what failed. Tests with the label `timed` run alone.
beside='' beside_log=build/beside.log
begin_beside() {
  echo "test: beside the tests: clang-tidy (log: $lint_log), builds of the next stages (log: $beside_log)"
  rm -f "$lint_code"
  set -m  # a process group of its own, which is paused and ended as one
  (
    set +e
    trap - ERR EXIT
    renice -n 19 -p "$BASHPID"
    chrt --idle -p 0 "$BASHPID"
    lint --changed clean --minutes "$ATOLL_LINT_MINUTES"
    cmake --preset tsan && cmake --build --preset tsan --parallel "$jobs" --target "${threaded_targets[@]}"
    cmake --preset asan && cmake --build --preset asan --parallel "$jobs" --target memory_tests
  ) >"$beside_log" 2>&1 </dev/null &
  beside=$!
  set +m
}
beside_runs() { [ -n "$beside" ] && kill -0 -- "-$beside" 2>/dev/null; }
signal_beside() { if beside_runs; then kill "-$1" -- "-$beside" 2>/dev/null || true; fi; }  # SIGNAL
end_beside() {
  signal_beside TERM
  signal_beside CONT
  if [ -n "$beside" ]; then wait "$beside" || true; fi
  while beside_runs; do sleep 0.2; done
  beside=''
}

groups=build,torch,test
if [ "$mode" != quick ]; then groups+=,node,browser,lint,arm64,wheel,interop,harness; fi
if [ "$mode" = full ]; then groups+=,fuzz,containers,fresh; fi
if [ "$setup" = yes ]; then
  start=$SECONDS
  ./scripts/setup.sh --groups "$groups"
  record packages $((SECONDS - start)) passed
fi

release_tests() {
  if [ "$strict" = no ]; then
    build release -DATOLL_BUILD_TESTS=ON -DATOLL_BUILD_BENCH=OFF
    run release release -j "$slots" -LE '^(long|slow)$'
    return
  fi
  build release -DATOLL_BUILD_TESTS=ON -DATOLL_BUILD_BENCH=ON
  if [ -n "${ATOLL_LINT_MINUTES:-}" ]; then begin_beside; fi
  run release release -j "$slots" -LE '^(long|timed)$'
  signal_beside STOP
  run timed release -L '^timed$' -LE '^long$'
  signal_beside CONT
  if [ -n "$beside" ]; then
    report_lint
    end_beside
  fi
}

if [ "$mode" = quick ]; then
  release_tests
elif [ -n "$regex" ]; then
  release_tests
else
  export ATOLL_STAGE_TIMES=$times ATOLL_TEST_STRICT=yes ATOLL_TEST_JUNIT=$junit
  if [ "$mode" = ci ]; then export ATOLL_LINT_MINUTES=5; fi
  blocks=(python3 -B tests/docs/readme_blocks.py)
  # What the quickstart prints is checked too: the time to the first loss, and how few bytes it moved.
  checked=(python3 -B tests/docs/quickstart_output.py)
  # The first block ends with this script without options: these are the tests of preset release.
  command_stage "README, Try it" "${checked[@]}" "${blocks[@]}" --run "Try it" --timeout 4000
  command_stage "quickstart, killed" "${checked[@]}" ./scripts/quickstart.sh --fresh --rounds 6 --kill-a-worker --dir run/killed --no-setup
  command_stage "README, the rest" "${blocks[@]}" --run "By hand" --run "Running for real" --timeout 900
  unset ATOLL_STAGE_TIMES ATOLL_TEST_STRICT ATOLL_TEST_JUNIT ATOLL_LINT_MINUTES
  if [ "$mode" = full ]; then
    lint --changed clean
    report_lint
  fi
fi
if [ "$mode" != quick ]; then
  # That every file compiles alone shows that no header leans on another.
  build plain
  standalone=(python3 -B tests/style/standalone.py)
  if [ "$mode" = full ]; then standalone+=(--all); fi
  command_stage standalone "${standalone[@]}"
  build tsan -- "${threaded_targets[@]}"
  run tsan tsan -j "$((2 * jobs))" -L "$threaded" -LE '^(long|style|integration|browser|script)$' -E '^metrics_page$'
  # The unit tests, and nothing that only other tests need: the lists are CMake's (cmake/AtollTargets.cmake). In CI without the
  # coordinator's rooms, which TSan looks at, and without what compiles longest: the command line and whole programs. Preset asan
  # leaves out checks at every use of a pointer, a quarter of its compile time.
  if [ "$mode" = full ]; then
    build asan -DATOLL_SANITIZE_WITHOUT= -- unit_tests
    run asan asan -j "$((2 * jobs))" -L '^unit$' -LE '^(long|style|integration|browser|script)$'
  else
    build asan -- memory_tests
    run asan asan -j "$((2 * jobs))" -L '^unit$' -LE '^(long|style|integration|browser|script|server|cli|launch|grpc)$'
  fi
fi
if [ "$mode" = full ]; then
  build fuzz -DATOLL_FUZZ_SECONDS="${ATOLL_FUZZ_SECONDS:-60}"
  run fuzz fuzz -j "$slots"
  run release-long release -j 1 -L '^long$'
fi

if [ ${#failed[@]} -gt 0 ]; then
  trap - ERR
  if [ -z "$indent" ]; then
    find build -maxdepth 2 -name 'junit-*.xml' -newermt "@$began" -exec python3 -B tests/tools/show_failures.py {} + >&2
  fi
  echo "test: FAILED: ${failed[*]}" >&2
  exit 1
fi
