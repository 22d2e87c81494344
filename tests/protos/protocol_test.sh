#!/usr/bin/env bash
# protocol_test.sh: the .proto files keep to buf's rules (protos/buf.yaml) and break nothing of the published protocol; and
# a change that would break it is found.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=$(tests/tools/npm_tools.sh "@bufbuild/buf-linux-$(uname -m | sed s/x86_64/x64/)")
buf=$tools/bin/buf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BUF_CACHE_DIR=$work/cache

"$buf" lint protos
"$buf" breaking protos --against protos/published.binpb

breaks() {  # breaks FILE SED_EXPRESSION WORDS: with this change of the file, buf says these words
  rm -rf "$work/protos"
  cp -r protos "$work/protos"
  sed -i -E "$2" "$work/protos/$1"
  if cmp -s "protos/$1" "$work/protos/$1"; then echo "the change '$2' of $1 changes nothing"; exit 1; fi
  if "$buf" breaking "$work/protos" --against protos/published.binpb >"$work/said" 2>&1; then
    echo "nobody minds the change '$2' of $1"
    exit 1
  fi
  grep -qF -- "$3" "$work/said" || { echo "the change '$2' of $1 is minded for another reason:"; cat "$work/said"; exit 1; }
}
breaks atoll/v1/coordinator.proto 's/^  uint32 fragment = 1;/  uint32 fragment = 100;/' 'was deleted'
breaks atoll/v1/coordinator.proto 's/^  double lease_s = 1;/  float lease_s = 1;/' 'changed type'
breaks atoll/v1/admin.proto '/rpc GetMetrics\(/d' 'GetMetrics'
breaks atoll/v1/types.proto 's/^    WORKER_LOST = /    WORKER_GONE = /' 'WORKER_'
echo "lint and compatibility: well"
