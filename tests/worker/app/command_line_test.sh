#!/usr/bin/env bash
# command_line_test.sh WORKER: which coordinator `generate` asks, however it was named. Nobody listens at these addresses.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
worker=$1
failed=0
# In a network of its own, so that no coordinator of this machine answers at the default address.
apart=()
if unshare -rn true 2>/dev/null; then apart=(unshare -rn); fi

# asks ADDRESS ENVIRONMENT ARGUMENTS...: the message names this address.
asks() {
  local address=$1 variable=$2 said code=0
  shift 2
  said=$("${apart[@]}" env ${variable:+"$variable"} "$worker" "$@" 2>&1) || code=$?
  if [ $code -eq 3 ] && grep -qF "$address" <<<"$said"; then return; fi
  echo "$variable atoll-worker $*: exit code $code, and not about $address: $said" >&2
  failed=1
}

asks 127.0.0.1:7600 '' generate
asks 127.0.0.1:9 '' generate --coordinator 127.0.0.1:9
asks 127.0.0.1:9 '' --coordinator 127.0.0.1:9 generate
asks 127.0.0.1:9 '' --coordinator 127.0.0.1:11 generate --coordinator 127.0.0.1:9
asks 127.0.0.1:9 ATOLL_COORDINATOR=127.0.0.1:9 generate
asks 127.0.0.1:9 ATOLL_COORDINATOR=127.0.0.1:11 --coordinator 127.0.0.1:9 generate
asks 127.0.0.1:9 ATOLL_COORDINATOR=127.0.0.1:11 generate --coordinator 127.0.0.1:9

# The codes of ranks are not in the table of all programs.
said=$("$worker" --help | tr -s ' \n' ' ')
for words in 'exits with 75' 'with 76' '--ranks 8'; do
  if ! grep -qF -- "$words" <<<"$said"; then
    echo "atoll-worker --help says nothing of: $words" >&2
    failed=1
  fi
done

# An option of training means nothing to `generate`, and is not dropped in silence.
code=0
said=$("$worker" --name w0 generate 2>&1) || code=$?
if [ $code -ne 2 ] || ! grep -qF -- --name <<<"$said"; then
  echo "atoll-worker --name w0 generate: exit code $code: $said" >&2
  failed=1
fi

# A wrong --data leaves no state directory; a seed's range can be read.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/docs"
touch "$work/docs/page.md"
code=0
said=$("$worker" --name w0 --data "$work/docs" --state-dir "$work/new/state" 2>&1) || code=$?
if [ $code -ne 6 ] || ! grep -qF -- "--out $work/docs/tokens FILE" <<<"$said" || [ -e "$work/new" ]; then
  echo "atoll-worker --data FOLDER-OF-TEXTS: exit code $code, left $(ls "$work"): $said" >&2
  failed=1
fi
# A wrong name is wrong use and leaves no state directory; a state directory that cannot be read is a matter of storage.
for _ in {1..400}; do echo "enough text for a few sequences of a tiny model"; done >"$work/text.txt"
"$(dirname "$worker")/atoll-data" tokenize --tokenizer bytes --out "$work/tokens" "$work/text.txt" >/dev/null
mkdir -p "$work/damaged/identity"
for wanted in "2 w/0 $work/new" "4 w0 $work/damaged"; do
  read -r expected name state <<<"$wanted"
  code=0
  said=$("$worker" --name "$name" --data "$work/tokens" --state-dir "$state" 2>&1) || code=$?
  if [ $code -ne "$expected" ] || [ -e "$work/new" ]; then
    echo "atoll-worker --name $name --state-dir $state: exit code $code, expected $expected: $said" >&2
    failed=1
  fi
done
# A graph of CUDA records nothing on the processor.
code=0
said=$("$worker" --name w0 --data "$work/tokens" --state-dir "$work/new" --device cpu --cuda-graph 2>&1) || code=$?
if [ $code -ne 2 ] || ! grep -qF "give --device cuda" <<<"$said" || [ -e "$work/new" ]; then
  echo "atoll-worker --device cpu --cuda-graph: exit code $code: $said" >&2
  failed=1
fi
if ! grep -qF "0 to 2^53" <<<"$("$worker" generate --help)"; then
  echo "atoll-worker generate --help does not say which seeds it takes" >&2
  failed=1
fi
exit $failed
