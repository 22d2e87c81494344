#!/usr/bin/env bash
# publish_protocol.sh [COMMIT]: writes protos/published.binpb, the protocol of that commit (default: the previous release,
# tests/integration/upgrade/previous_release). Run it at a release: afterwards the test `protocol` compares every change with
# this file. buf comes from npm (tests/tools/npm_tools.sh).
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

commit=${1:-$(awk '!/^#/ { print $2; exit }' tests/integration/upgrade/previous_release)}
tools=$(tests/tools/npm_tools.sh "@bufbuild/buf-linux-$(uname -m | sed s/x86_64/x64/)")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive "$commit" protos | tar -x -C "$work"
cp protos/buf.yaml "$work/protos/"
"$tools/bin/buf" build "$work/protos" --exclude-source-info -o protos/published.binpb
echo "protos/published.binpb is the protocol of $commit"
