#!/usr/bin/env bash
# metrics_port_test.sh WORKER DATA: the real worker, LibTorch and all, serves its metrics, also while there is no coordinator.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

"$2" tokenize --out "$work/tokens" CONTRIBUTING.md >/dev/null
"$1" --coordinator 127.0.0.1:1 --name w0 --data "$work/tokens" --state-dir "$work/state" --metrics-listen 127.0.0.1:0 \
  --threads 1 >"$work/log" 2>&1 &
pid=$!
for _ in $(seq 300); do
  if grep -q 'http://' "$work/log" || ! kill -0 "$pid" 2>/dev/null; then break; fi
  sleep 0.1
done
url=$(grep -o 'http://[0-9.:]*/metrics' "$work/log") || { cat "$work/log"; exit 1; }
python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$url" >"$work/metrics"
grep -q '^atoll_worker_connected 0' "$work/metrics" || { cat "$work/metrics"; exit 1; }
kill -TERM "$pid"
wait "$pid" || { echo "exit code $?"; cat "$work/log"; exit 1; }
pid=
