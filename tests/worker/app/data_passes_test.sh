#!/usr/bin/env bash
# data_passes_test.sh COORDINATOR WORKER DATA: a worker of a run that reads its text many times says so once, and trains. It
# also says once on which device.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

cat >"$work/run.yaml" <<'END'
run: {name: passes, workers: 1, rounds: 20}
model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}
data: {tokenizer: bytes}
inner: {steps: 10, learning_rate: 0.001, batch: 10}
END
# 16,000 tokens are planned, and the training text has fewer than 2,000.
head -c 2000 CONTRIBUTING.md >"$work/text"
"$3" tokenize --out "$work/tokens" "$work/text" >/dev/null
"$1" --config "$work/run.yaml" --data-dir "$work/data" --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --metrics-listen "" \
  --web-listen "" --port-file "$work/ports" >"$work/coordinator" 2>&1 &
pid=$!
for _ in $(seq 600); do
  if [ -e "$work/ports" ] || ! kill -0 "$pid" 2>/dev/null; then break; fi
  sleep 0.1
done
address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["data"])' "$work/ports") || { cat "$work/coordinator"; exit 1; }
"$2" --coordinator "$address" --name w0 --data "$work/tokens" --state-dir "$work/state" --threads 1 >"$work/log" 2>&1 ||
  { echo "exit code $?"; cat "$work/log"; exit 1; }
said=$(grep -c 'warning the run reads its training text .* times (16.0k tokens planned, .*use more text or fewer run.rounds' "$work/log") || true
[ "$said" = 1 ] || { cat "$work/log"; exit 1; }
said=$(grep -cE ' computes on cpu [^=]+ threads=1 precision=fp32 ranks=1$' "$work/log") || true
[ "$said" = 1 ] || { cat "$work/log"; exit 1; }
