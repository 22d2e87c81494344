#!/usr/bin/env bash
# Trains a language model with DiLoCo on a bare Debian machine, with one command. See --help.
set -Eeuo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Trains a small GPT on this machine with DiLoCo, on real English text. One coordinator launches four workers. The first call
also compiles Atoll, which takes some minutes; the training takes a few more.

  ./scripts/quickstart.sh                    install missing packages, build, train, show the run live
  ./scripts/quickstart.sh                    again: continue the same run; if it is finished, add as many rounds as at first
  ./scripts/quickstart.sh --fresh            delete the run and start a new one
  ./scripts/quickstart.sh --text my.txt ...  train on your own text; the same text again continues its run, another text
                                             needs --fresh or another --dir

Options:
  --workers N        number of workers (new run: 4; continued run: its planned number, plus those added since)
  --rounds N         rounds (outer steps) in total; default for a new run: as in configs/quickstart.yaml. A run can
                     get more rounds than it has, but not fewer
  --kill-a-worker    kill the last worker (kill -9) after a third of the rounds that are left; the coordinator's launcher
                     restarts it
  --dir DIR          folder of the run: a new or empty folder, or one that the quickstart created (default: run/quickstart
                     in the repository)
  --preset NAME      build preset (release)
  --no-setup         do not install packages
  -h, --help         this text

Relative paths of --dir and --text start at the current folder. --fresh deletes only the quickstart's own files in DIR.

Ctrl-C stops everything cleanly. Committed versions are kept, and the same command continues from them. A run keeps its
first configuration, in run.yaml in its directory.

Exit codes: 0 trained to the end, 1 failed (the message says why), 2 wrong usage, 130 stopped by Ctrl-C.
HELP
}

die() { echo "quickstart: $*" >&2; exit 2; }
fail() { echo "quickstart: $*" >&2; exit 1; }
counted() { if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 ${2}s"; fi; }  # NUMBER NOUN
say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
from_caller() { if [[ $1 = /* ]]; then echo "$1"; else echo "$caller/$1"; fi; }  # PATH: absolute

workers="" rounds="" fresh=no kill_one=no dir=$PWD/run/quickstart preset=release setup=yes
texts=()
# Suggests an option, "; did you mean X?": one with the same letters, or one that differs by one letter.
did_you_mean() {  # OPTION
  local known i
  for known in --workers --rounds --fresh --text --kill-a-worker --dir --preset --no-setup --help; do
    if [ "$(fold -w 1 <<<"$1" | sort)" = "$(fold -w 1 <<<"$known" | sort)" ]; then echo "; did you mean $known?"; return; fi
    for ((i = 2; i <= ${#known}; i++)); do  # a letter too few, a wrong one, one too many
      case $1 in
        "${known:0:i}${known:i+1}"|"${known:0:i}"?"${known:i+1}"|"${known:0:i}"?"${known:i}") echo "; did you mean $known?"; return ;;
      esac
    done
  done
}

while [ $# -gt 0 ]; do
  case $1 in
    --workers|--rounds|--dir|--preset) [ $# -ge 2 ] || die "$1 needs a value; see --help" ;;
  esac
  case $1 in
    --workers) workers=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --dir) [ -n "$2" ] || die "--dir needs a folder"; dir=$(from_caller "$2"); shift 2 ;;
    --preset) preset=$2; shift 2 ;;
    --fresh) fresh=yes; shift ;;
    --kill-a-worker) kill_one=yes; shift ;;
    --no-setup) setup=no; shift ;;
    --text)
      shift
      while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do texts+=("$(from_caller "$1")"); shift; done
      [ ${#texts[@]} -gt 0 ] || die "--text needs at least one file" ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown option '$1'$(did_you_mean "$1"); see --help" ;;
  esac
done
[[ -z $workers || $workers =~ ^[1-9][0-9]{0,2}$ ]] || die "--workers takes a number from 1 to 999, not '$workers'"
[[ -z $rounds || $rounds =~ ^[1-9][0-9]{0,6}$ ]] || die "--rounds takes a number from 1 on, not '$rounds'"
grep -o '"name": "[^"]*"' CMakePresets.json 2>/dev/null | grep -qxF "\"name\": \"$preset\"" ||
  die "--preset $preset: CMakePresets.json has no such preset; it has $(grep -o '"name": "[^"]*"' CMakePresets.json |
    cut -d '"' -f 4 | sort -u | paste -sd ' ')"

# What --fresh deletes. The lock, the mark and the ports outlive it: an open page stays valid.
run_files=(coordinator workers tokens logs download gcide.txt texts run.yaml run.yaml.new rounds finished model.safetensors)
mark=.atoll-quickstart

made_by_quickstart() {
  [ ! -f "$dir/$mark" ] || return 0
  # Before the mark there was only the lock: then everything else must be the quickstart's too. An empty folder may be used.
  local path known=" ${run_files[*]} .lock ports.json " entries=0
  for path in "$dir"/* "$dir"/.[!.]* "$dir"/..?*; do
    [ -e "$path" ] || [ -L "$path" ] || continue
    [[ $known = *" ${path##*/} "* ]] || return 1
    entries=$((entries + 1))
  done
  [ "$entries" = 0 ] || [ -f "$dir/.lock" ]
}

check_paths() {
  local i name text
  dir=$(realpath -m -- "$dir") || die "cannot resolve the folder of --dir"
  [ ! -e "$dir" ] || [ -d "$dir" ] || die "$dir is not a folder; give --dir a new or empty one"
  [ ! -d "$dir" ] || [ -r "$dir" ] || die "cannot read the folder $dir"
  made_by_quickstart || die "$dir has files and was not made by the quickstart, which would write and delete files there. \
Give --dir a new or empty folder"
  for i in "${!texts[@]}"; do
    [ ! -d "${texts[$i]}" ] || die "'${texts[$i]}' is a folder; name the text files in it"
    text=$(realpath -- "${texts[$i]}" 2>/dev/null) && [ -f "$text" ] && [ -r "$text" ] ||
      die "cannot read the text file '${texts[$i]}'"
    for name in "${run_files[@]}"; do
      case $text in
        "$dir/$name"|"$dir/$name"/*) die "--fresh deletes $dir/$name, and $text with it. Move the text to another folder first" ;;
      esac
    done
    texts[i]=$text
  done
}
check_paths

# The quickstart's coordinator has no TLS and asks for no token; every program is told its address.
unset "${!ATOLL_TLS_@}" ATOLL_TOKEN_FILE ATOLL_ADMIN_TOKEN_FILE ATOLL_WORKER_TOKEN_FILE ATOLL_COORDINATOR ATOLL_ADMIN

bin=build/$preset/bin
logs=$dir/logs
config=$dir/run.yaml
# Commands that are shown must work where the user stands.
if [ "$caller" -ef . ]; then here=.; else printf -v here '%q' "$PWD"; fi
again=$here/scripts/quickstart.sh dir_option=""
[ "$dir" = "$(realpath -m run/quickstart)" ] || printf -v dir_option ' --dir %q' "$dir"
printf -v quoted_dir '%q' "$dir"
children=() helper_pids=() killer_pid="" coordinator_pid="" watch_pid=""

# Children run in sessions of their own, so that Ctrl-C reaches only this script, which stops them in order; if the
# script itself is killed, the kernel signals them (pdeathsig). The workers are the coordinator's children: it ends them
# before it ends, and the kernel ends them with it.
start() {
  local log=$1; shift
  setsid setpriv --pdeathsig TERM "$@" >>"$log" 2>&1 </dev/null 8>&- &  # without the lock
  started_pid=$!
  disown "$started_pid"  # else the shell prints "Killed" in the middle of the view
  remember_process "$started_pid"
  children+=("$started_pid")
}

wait_gone() {  # PID SECONDS: true when the process is gone by then
  local i
  for ((i = 0; i < $2 * 10; i++)); do alive "$1" || return 0; sleep 0.1; done
  return 1
}

# Before the coordinator ends: the view would report that it does not answer.
end_view() {
  [ -n "$watch_pid" ] || return 0
  {
    signal_process TERM "$watch_pid"
    wait_gone "$watch_pid" 5 || signal_process KILL "$watch_pid"
  } 2>/dev/null
  watch_pid=""
}

stop_all() {
  trap - INT TERM EXIT
  local pid
  {  # the shell would report each job that is killed here
    end_view
    for pid in "${helper_pids[@]}"; do signal_process KILL "$pid"; done
    if [ -n "$coordinator_pid" ]; then
      signal_process TERM "$coordinator_pid"
      wait_gone "$coordinator_pid" 60 || signal_process KILL "$coordinator_pid"
    fi
    for pid in "${children[@]}"; do signal_process KILL "$pid"; done
    # A signal may come between the start of a helper and its entry in the list, and "wait" waits for every job.
    for pid in $(jobs -p); do kill -KILL "$pid" || true; done
    wait || true
  } 2>/dev/null
}

interrupted() {
  trap '' INT TERM
  end_view
  echo
  say "Stopping: workers first, then the coordinator"
  stop_all
  echo "Nothing is left running. Everything committed is in $dir; continue with: $again$dir_option"
  exit 130
}

# Sets the variable NAME to how long it took since the last call, in words.
took() { printf -v "$1" '%s' "$(human_seconds $((SECONDS - stage_began)))"; stage_began=$SECONDS; }  # NAME

build() {
  # Without the tests, which need more packages; a build folder that is configured with tests keeps them.
  local options=() log=$logs/build.log
  lock_build
  [ -f "build/$preset/CMakeCache.txt" ] || options=(-DATOLL_BUILD_TESTS=OFF -DATOLL_BUILD_BENCH=OFF)
  if [ "$setup" = yes ]; then say "Packages"; scripts/setup.sh --groups build,torch 7>&- 8>&-; fi
  took packages_took
  say "Build (preset $preset)"
  echo "Compiling the coordinator, the worker and the tools: some minutes the first time, seconds after that. Log: $log"
  share_compiler_cache "$PWD"
  : >"$log"
  cmake --preset "$preset" "${options[@]}" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "cmake failed; see $log"; }
  run_with_progress "build" "$log" cmake --build --preset "$preset" --parallel "$(compile_jobs)" \
    --target atoll-coordinator atoll-worker atoll-model atollctl atoll-data 7>&- 8>&- || {  # a sleep of its progress outlives it
    grep -nE -A8 'error:|FAILED' "$log" | head -n 40 >&2 || true
    fail "the build failed; see $log"
  }
  exec 7>&-
  took build_took
  echo "Built in $build_took."
}

# The GNU Collaborative International Dictionary of English, from Debian's package, unpacked without installing it.
fetch_text() {
  [ ! -s "$dir/gcide.txt" ] || return 0
  local work=$dir/download
  rm -rf "$work"; mkdir -p "$work"
  if ! (cd "$work" && apt-get download dict-gcide >apt.log 2>&1); then
    echo "Refreshing the package lists first."
    if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo apt-get update -qq; fi
    (cd "$work" && apt-get download dict-gcide >apt.log 2>&1) || { cat "$work/apt.log" >&2; fail "cannot download dict-gcide, the text that a run learns \
if it gets no other. On other text: $again --text FILE...$dir_option, for example FILE... = $here/README.md $here/docs/*/*.md"; }
  fi
  dpkg -x "$work"/dict-gcide_*.deb "$work"
  zcat "$work/usr/share/dictd/gcide.dict.dz" >"$work/text"; mv "$work/text" "$dir/gcide.txt"
  rm -rf "$work"
}

sums_of_texts() { cksum -- "${texts[@]}"; }  # with a line for each: contents and path

# A run continues with its own text. Another text means another run, so the user must say what to do with the existing one.
check_text() {
  if [ ${#texts[@]} -eq 0 ]; then
    # Interrupted before its text was tokenized: then with the text that it was called with.
    if [ ! -f "$dir/tokens/meta.json" ] && [ -s "$dir/texts" ]; then mapfile -t texts < <(sed -E 's/^[0-9]+ [0-9]+ //' "$dir/texts"); fi
    return 0
  fi
  local sums
  sums=$(sums_of_texts)
  if [ -f "$dir/tokens/meta.json" ] && { [ ! -f "$dir/texts" ] || [ "$sums" != "$(<"$dir/texts")" ]; }; then
    die "the run in $dir trains on another text. To delete it and train a new one on this text, add --fresh; to keep it, \
give the new run another folder with --dir DIR"
  fi
  echo "$sums" >"$dir/texts"
}

prepare_data() {
  [ ! -f "$dir/tokens/meta.json" ] || return 0
  say "Text"
  if [ ${#texts[@]} -eq 0 ]; then fetch_text; texts=("$dir/gcide.txt"); fi
  "$bin/atoll-data" tokenize --tokenizer bytes --out "$dir/tokens" "${texts[@]}"
}

recorded() { "$bin/atollctl" --json config show "$config" | "$bin/atollctl" field "run.$1"; }  # FIELD: of the run in $dir

write_config() {
  local base=configs/quickstart.yaml total=$rounds has warmup=""
  if [ -f "$config" ]; then
    "$bin/atollctl" config validate "$config" >/dev/null || fail "$config cannot be used; correct it, or start a new one: $again --fresh$dir_option"
    # Some settings are fixed when a run begins, so a continued run uses its own file.
    base=$config
    has=$(recorded workers)
    workers=${workers:-$has}
    if [ "$has" != "$workers" ]; then
      echo "This run was planned for $(counted "$has" worker); now it is for $workers. Its token budget stays: the number of rounds follows."
    fi
    # A file cannot extend a run; extend_run does.
    total=$(recorded rounds)
    refuse_fewer_rounds "$total"  # before anything starts; extend_run refuses for a run that was extended
  elif [ -n "$rounds" ] && [ "$rounds" -lt 4 ]; then
    warmup=$((rounds * 25))  # half of the inner steps: a warmup cannot be longer than the run
  fi
  workers=${workers:-4}
  sed -e "s/^  workers: .*/  workers: $workers/" ${total:+-e "s/^  rounds: .*/  rounds: $total/"} \
    ${warmup:+-e "s/^  warmup_steps: .*/  warmup_steps: $warmup/"} "$base" >"$config.new"
  # Only of a new run: the file of a continued one does not know by how much the run was extended.
  if [ "$base" = "$config" ]; then
    "$bin/atollctl" config validate "$config.new" >/dev/null
  else
    "$bin/atollctl" config validate "$config.new" | sed "s/run\.yaml\.new/run.yaml/"
  fi
  mv "$config.new" "$config"
}

# One quickstart at a time in a directory: a second one would delete the files of a live run.
lock_directory() {
  mkdir -p "$dir" || die "cannot create the folder $dir"
  exec 8>"$dir/.lock"
  flock -n 8 || fail "a quickstart already runs in $dir: wait for it, stop it with Ctrl-C, or give this one another place with --dir DIR"
  echo "Made by Atoll's scripts/quickstart.sh, which deletes its own files here when it is called with --fresh." >"$dir/$mark"
}

# One build at a time in a build folder, whatever the directories of the runs.
lock_build() {
  mkdir -p "build/$preset"
  exec 7>"build/$preset/.quickstart.lock"
  if ! flock -n 7; then
    echo "Another quickstart builds in build/$preset; waiting until it has built."
    flock 7
  fi
}

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Sets data, admin, metrics and web: the port of the run's last start, so that an open page stays valid, else the
# default, else 0 for any free one.
choose_ports() {
  local default name usual last
  for default in data=7600 admin=7601 metrics=7602 web=7604; do
    name=${default%=*} usual=${default#*=} last=""
    if [ -s "$dir/ports.json" ]; then last=$("$bin/atollctl" field "$name" <"$dir/ports.json" 2>/dev/null) || last=""; fi
    last=${last##*:}
    if [[ $last =~ ^[1-9][0-9]*$ ]] && port_free "$last"; then
      printf -v "$name" '%s' "$last"
    elif port_free "$usual"; then
      printf -v "$name" '%s' "$usual"
    else
      echo "Another program uses port $usual ($name); this run gets a different one."
      printf -v "$name" 0
    fi
  done
}

launch_coordinator() {  # DATA ADMIN METRICS WEB: ports
  local run_name
  run_name=$(recorded name)
  rm -f "$dir/ports.json"
  touch "$logs/coordinator.log"
  log_begin=$(wc -l <"$logs/coordinator.log")
  start "$logs/coordinator.log" "$bin/atoll-coordinator" --config "$config" --data-dir "$dir/coordinator" \
    --listen "127.0.0.1:$1" --admin-listen "127.0.0.1:$2" --metrics-listen "127.0.0.1:$3" --web-listen "127.0.0.1:$4" \
    --port-file "$dir/ports.json" --log-format json \
    --launcher process --launch-workers "$workers" --worker-command "$bin/atoll-worker" \
    --worker-state-dir "$dir/workers" --worker-log-dir "$logs" \
    --worker-arg="--data=$dir/tokens" --worker-arg="--threads=$threads" --worker-arg=--log-format=json \
    --worker-arg="--expect-run=$run_name"  # another coordinator may get these ports after this one
  coordinator_pid=$started_pid
}

coordinator_serves() {  # false when it ended
  local i
  for ((i = 0; i < 300; i++)); do
    [ ! -s "$dir/ports.json" ] || return 0
    alive "$coordinator_pid" || return 1
    sleep 0.1
  done
  stop_all
  fail "the coordinator did not say where it listens; see $logs/coordinator.log"
}

start_coordinator() {
  local data admin metrics web attempt
  for attempt in 1 2 3; do
    choose_ports
    # A port that only seemed to be free, twice: the system's choice always is.
    if [ "$attempt" = 3 ]; then data=0 admin=0 metrics=0 web=0; fi
    launch_coordinator "$data" "$admin" "$metrics" "$web"
    if coordinator_serves; then break; fi
    if [ "$attempt" = 3 ] || [ -z "$(launched 'is in use by another process')" ]; then
      tail -n "+$((log_begin + 1))" "$logs/coordinator.log" | tail -n 5 >&2
      stop_all
      fail "the coordinator did not start; see $logs/coordinator.log"
    fi
    coordinator_pid="" children=()
    echo "Another program took a port of this run before its coordinator did; trying other ports."
  done
  port() { "$bin/atollctl" field "$1" <"$dir/ports.json"; }
  coordinator=$(port data) admin_address=$(port admin) metrics_address=$(port metrics) web_address=$(port web)
}

# What the coordinator of this call logged: earlier calls wrote to the same file.
launched() { tail -n "+$((log_begin + 1))" "$logs/coordinator.log" | grep -oE "$1" || true; }

asked() { "$bin/atollctl" --admin "$admin_address" --json "$1" 2>/dev/null | "$bin/atollctl" field "$2" 2>/dev/null || true; }

version_now() { asked status fragments.0.version; }
worker_pid() { asked launcher "workers.name=$1.handle"; }  # NAME

workers_gone() {  # true when every worker has exited with success, so that none is restarted, and none runs
  local gone
  gone=$(launched 'not started again' | wc -l)
  [ "${gone:-0}" -ge "$workers" ] || return 1  # empty: interrupted
  [ "$(launched 'started \(process' | wc -l)" = "$(launched '"w[0-9]+ (ended|finished|was stopped|was drained): ' | wc -l)" ]
}

# True when each worker has ended twice in a row with an error of its own: starting it again will not help. A worker that
# is killed, or loses the coordinator, comes back.
workers_failing() {
  local failing
  failing=$(launched '"w[0-9]+ ended: exit code [24567] [^"]*\(2 times in a row' | sort -u -k1,1 | wc -l)
  [ "${failing:-0}" -ge "$workers" ]
}

why_workers_fail() {
  grep -h '"level":"error"' "$logs"/w[0-9]*.log | tail -n 1 | "$bin/atollctl" field message || echo "see $logs/w0.log"
}

# Extensions are known to the coordinator, which does not run when --rounds is checked first.
remember_rounds() {
  local has
  has=$(asked status config.run.rounds)
  [ -z "$has" ] || echo "$has" >"$dir/rounds"
}

refuse_fewer_rounds() {  # ROUNDS that the run has
  [ -n "$rounds" ] && [ "$rounds" -lt "$1" ] || return 0
  stop_all
  die "--rounds $rounds: the run in $dir has $(counted "$1" round) and cannot get fewer. Continue it without --rounds, extend it with a \
larger number (as 'atollctl run extend' does), or delete it and start a new one with --fresh"
}

# The launcher remembers `workers scale`, `add` and `drain` from the last call. A number for this call is newer.
agree_on_workers() {  # WORKERS of the command line, or nothing
  local target
  target=$(asked launcher target)
  if [ -z "$target" ] || [ "$target" = "$workers" ]; then return 0; fi
  if [ -n "$1" ]; then
    "$bin/atollctl" --admin "$admin_address" workers scale "$1"
  else
    echo "'atollctl workers' has set this run to $(counted "$target" worker). For another number: $again$dir_option --workers N"
    if [ "$target" -gt 0 ]; then workers=$target; fi
  fi
}

# More rounds than the run has: up to --rounds; after its end as many as the run was made with.
extend_run() {  # yes when the run was finished
  local have more=0
  have=$(asked status config.run.rounds)
  if [ -n "$rounds" ]; then
    more=$((rounds - ${have:-rounds}))
    refuse_fewer_rounds "${have:-0}"
    if [ "$1" = yes ] && [ "$more" = 0 ]; then echo "All $have rounds are done. For more, give a larger --rounds, or none."; fi
  elif [ "$1" = yes ]; then
    more=$(recorded rounds)
  fi
  if [ "$more" -le 0 ]; then return 0; fi
  "$bin/atollctl" --admin "$admin_address" run extend "$more" --yes
}

# Runs beside the view of a run that begins: prints a line as soon as the first round is merged, with the time until then.
tell_first_loss() {
  local loss version training_took
  while sleep 0.2; do
    alive $$ || return 0
    version=$(version_now)
    if [ "${version:-0}" -gt 0 ]; then break; fi
  done
  took training_took
  loss=$(asked status rounds.-1.train_loss)
  if [ -z "$loss" ]; then return 0; fi
  printf 'first training loss %.3f, %s after the start (packages %s, build %s, text %s, training %s)\n' "$loss" \
    "$(human_seconds "$SECONDS")" "$packages_took" "$build_took" "$text_took" "$training_took" >"$logs/first_loss"
  if [ ! -t 1 ]; then cat "$logs/first_loss"; fi
}

# Kills the last worker after a third of the remaining rounds; the launcher starts it again.
kill_one_worker() {  # VERSION at the start
  local victim="" goal version="" pid="" again i
  goal=$(($1 + ($(asked status config.run.rounds) - $1) / 3 + 1))
  while [ "${version:-0}" -lt "$goal" ]; do
    sleep 0.2
    alive $$ || return 1
    version=$(version_now)
  done
  for ((i = workers - 1; i >= 0; i--)); do
    victim=w$i pid=$(worker_pid "w$i")
    [ -z "$pid" ] || break
  done
  [ -n "$pid" ] || { echo "no worker ran at version $version"; return 1; }
  kill -KILL "$pid" || { echo "worker $victim (process '$pid') could not be killed at version $version"; return 1; }
  echo "killed worker $victim (process $pid, kill -9) at version $version"
  for ((i = 0; i < 300; i++)); do
    again=$(worker_pid "$victim")
    if [ -n "$again" ] && [ "$again" != "$pid" ]; then
      echo "the launcher started worker $victim again (process $again)"
      return 0
    fi
    sleep 0.1
  done
  echo "worker $victim was not started again; see $logs/coordinator.log"
  return 1
}

# A run ends when its tokens are spent, not at a number of versions.
tell_budget() {
  local planned tokens
  planned=$(asked status config.run.workers) tokens=$(asked status total_tokens)
  [ -n "$tokens" ] || return 0
  # Three digits, as atollctl has them.
  tokens=$(awk -v n="$tokens" 'BEGIN {
    for (i = 1; n >= 999.5 && i < 6; ++i) n = n / 1000
    printf("%.*f%s", (n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2), n, substr(" kMGTP", i, (i > 1)))
  }')
  echo "$(counted "$(asked status config.run.rounds)" round) with $(counted "$planned" worker): $tokens tokens. These tokens end the run: with more workers" \
    "it takes fewer rounds, and the last round may exceed them."
}

finish() {
  local wanted
  wanted=$(asked launcher target)  # more than planned if some were added by hand
  [ "${wanted:-0}" -gt "$workers" ] || wanted=$workers
  say "Result"
  "$bin/atollctl" --admin "$admin_address" status --summary
  if [ -s "$logs/first_loss" ]; then sed 's/^/   /' "$logs/first_loss"; fi
  if [ "$kill_one" = yes ]; then sed 's/^/   /' "$logs/kill.log"; fi
  "$bin/atollctl" --coordinator "$coordinator" export --out "$dir/model.safetensors" | sed 's/^/   /'
  say "What it writes now"
  "$bin/atoll-model" generate --coordinator "$coordinator" --prompt "$prompt" --tokens 240 --temperature 0.7 --top-k 40 \
    --seed 1 --threads 1 2>>"$logs/generate.log" | sed 's/^/   /'
  remember_rounds
  touch "$dir/finished"
  stop_all
  cat <<HERE

   model            $dir/model.safetensors (safetensors, float32)
   run directory    $dir (coordinator's state: $dir/coordinator, tokens: $dir/tokens)
   logs             $logs
   train further    $again$dir_option
   write more       $here/$bin/atoll-model generate --model $quoted_dir/model.safetensors --config $quoted_dir/run.yaml --prompt "The "
   more workers     $again$dir_option --workers $((wanted + 1))
   start over       $again --fresh$dir_option
HERE
}

lock_directory
if [ "$fresh" = yes ]; then
  if [ ${#texts[@]} -eq 0 ]; then fetch_text; fi  # the old run stays if there is no text for a new one
  for name in "${run_files[@]}"; do [ "$name" = gcide.txt ] || rm -rf "${dir:?}/$name"; done
elif [ -s "$dir/rounds" ]; then
  refuse_fewer_rounds "$(<"$dir/rounds")"
fi
check_text
mkdir -p "$logs" "$dir/workers"
stage_began=$SECONDS packages_took="" build_took="" text_took=""
# Before the long build: a machine without a network should hear of it now. The text is a package, so its time counts as theirs.
if [ ${#texts[@]} -eq 0 ] && [ ! -f "$dir/tokens/meta.json" ]; then fetch_text; fi
build
prepare_data
took text_took
asked_workers=$workers
write_config
was_finished=no; [ ! -f "$dir/finished" ] || was_finished=yes
rm -f "$logs/first_loss" "$logs/kill.log"
prompt=${QUICKSTART_PROMPT:-"Wood "}
threads=$(( $(nproc) / workers )); [ "$threads" -ge 1 ] || threads=1

# Processes that share processors must not spin while they wait, or one that waits takes the time of one that computes.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

remember_process $$  # helpers end with this script
trap interrupted INT TERM
trap stop_all EXIT
say "Training: one coordinator, $(counted "$workers" worker)"
start_coordinator
launched 'the file changed, so it takes back [^"]*' | sort -u  # --workers changes it, for example
agree_on_workers "$asked_workers"
extend_run "$was_finished"
remember_rounds
rm -f "$dir/finished"
tell_budget
echo "In a browser:   http://$web_address/"
echo "Live elsewhere: $here/$bin/atollctl --admin $admin_address watch      Metrics: http://$metrics_address/metrics"
echo "More workers:   $here/$bin/atollctl --admin $admin_address workers add 1"
if [ "$coordinator $admin_address" != "127.0.0.1:7600 127.0.0.1:7601" ]; then
  echo "For atollctl:   export ATOLL_COORDINATOR=$coordinator ATOLL_ADMIN=$admin_address"
fi
begin=$(version_now)
if [ "${begin:-0}" = 0 ]; then tell_first_loss 8>&- & remember_process "$!"; helper_pids+=("$!"); fi
if [ "$kill_one" = yes ]; then
  touch "$logs/kill.log"
  kill_one_worker "${begin:-0}" >"$logs/kill.log" 2>&1 8>&- & killer_pid=$! helper_pids+=("$!")
  remember_process "$killer_pid"
fi

# The view runs in the background, so that this script can watch the processes meanwhile. Its "interrupted" is dropped:
# this script says what it stops. Should the script be killed, the kernel ends the view.
setpriv --pdeathsig TERM "$bin/atollctl" --admin "$admin_address" --timeout 60 watch --until-finished 8>&- \
  2> >(trap '' INT; exec sed -u '/^atollctl: interrupted$/d' >&2 8>&-) &
watch_pid=$!
remember_process "$watch_pid"
children+=("$watch_pid")
reason=""
while alive "$watch_pid"; do
  sleep 0.5
  if ! alive "$coordinator_pid"; then reason="the coordinator died; see $logs/coordinator.log"; break; fi
  if workers_failing; then
    why=$(why_workers_fail)
    end_view
    stop_all
    fail "no worker can train: $why. The workers' logs are in $logs. To begin again with another text: $again --fresh --text FILE$dir_option"
  fi
  # A worker that exited with success is not restarted: when all have, no process is left to finish the run.
  if workers_gone; then
    sleep 2  # workers exit a moment before the view sees the end of the run
    alive "$watch_pid" || break
    if workers_gone; then reason="all workers ended before the run did; see $logs/w0.log"; break; fi
  fi
done
if [ -n "$reason" ]; then
  end_view
  tail -n 3 "$logs/coordinator.log" "$logs"/w[0-9]*.log >&2 || true
  stop_all
  fail "$reason"
fi
wait "$watch_pid" || { stop_all; fail "the live view failed; see above"; }
watch_pid=""
killed=yes
if [ "$kill_one" = yes ]; then
  if alive "$killer_pid"; then
    killed=no
    echo "the run ended before a worker was killed and started again" >>"$logs/kill.log"
  else
    wait "$killer_pid" || killed=no
  fi
fi
finish
trap - EXIT
[ "$killed" = yes ] || fail "--kill-a-worker failed: $(tail -n 1 "$logs/kill.log")"
