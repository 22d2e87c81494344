# Sourced by the scripts right after `set -Eeuo pipefail`: reports the command that failed, shows how far a build is.
# -E makes functions and subshells report too.

# `set -e` alone ends a script without a message, so report the failed command.
report_failure() {  # STATUS COMMAND
  local i
  echo "${0##*/}: ${BASH_SOURCE[1]}:${BASH_LINENO[0]}: exit code $1 from: $2" >&2
  for ((i = 2; i < ${#BASH_SOURCE[@]}; i++)); do
    echo "${0##*/}:   called from ${BASH_SOURCE[$i]}:${BASH_LINENO[$((i - 1))]}" >&2
  done
}
trap 'report_failure "$?" "$BASH_COMMAND"' ERR

# Clones share compiled files: ccache ignores the path of the clone.
share_compiler_cache() {  # ROOT
  export CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1
}

# Number of files to compile at a time. A file that includes LibTorch needs about 2 GiB of memory.
compile_jobs() {
  local by_memory jobs
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)
  jobs=$(nproc)
  if [ "$by_memory" -lt "$jobs" ]; then jobs=$((by_memory > 1 ? by_memory : 1)); fi
  echo "$jobs"
}

# A machine that compiles can reuse a process id within seconds, so a process is identified by its id and its start time.
declare -A _process_began=()
_began() {  # PID: in clock ticks since the machine's start; nothing when it has ended
  local stat
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
  read -ra stat <<<"${stat##*) }"
  [ "${stat[0]}" = Z ] || echo "${stat[19]}"
}
remember_process() { _process_began[$1]=$(_began "$1"); }  # PID
alive() {  # PID: true while the process that was remembered runs
  local began
  began=$(_began "$1")
  [ -n "$began" ] && [ "$began" = "${_process_began[$1]:-}" ]
}
signal_process() { if alive "$2"; then kill "-$1" "$2" || true; fi; }  # SIGNAL PID: of a remembered process

human_seconds() {
  if [ "$1" -ge 60 ]; then echo "$(($1 / 60)) min $(($1 % 60)) s"; else echo "$1 s"; fi
}

# Prints the progress of the ninja build that writes LOG, until process PARENT ends or this process is stopped. On a terminal it
# updates one line; elsewhere it prints a line every 20 seconds (ATOLL_PROGRESS_S). It shows no time left, because cached steps
# take no time, steps with LibTorch take a minute, and the machine may sleep meanwhile.
_show_progress() {  # WHAT LOG PARENT
  local start=$SECONDS said=0 step done_steps all elapsed text
  while sleep 1 && kill -0 "$3" 2>/dev/null; do
    step=$(grep -aoE '^\[[0-9]+/[0-9]+\]' "$2" | tail -n 1 | tr -d '[]') || true
    [ -n "$step" ] || continue
    done_steps=${step%/*} all=${step#*/} elapsed=$((SECONDS - start))
    text="$1: $done_steps of $all steps done, $(human_seconds "$elapsed")"
    if [ -t 1 ]; then
      printf '\r\033[K%s' "$text"
    elif [ $((elapsed - said)) -ge "${ATOLL_PROGRESS_S:-20}" ]; then
      said=$elapsed
      echo "$text"
    fi
  done
}

# Runs a build with its output in LOG and shows how far it is. The status is the build's.
run_with_progress() {  # WHAT LOG COMMAND...
  local what=$1 log=$2 status=0 printer
  shift 2
  _show_progress "$what" "$log" $$ &
  printer=$!
  NINJA_STATUS='[%f/%t] ' "$@" >>"$log" 2>&1 </dev/null || status=$?
  kill "$printer" 2>/dev/null || true
  wait "$printer" 2>/dev/null || true
  if [ -t 1 ]; then printf '\r\033[K'; fi
  return "$status"
}
