#!/usr/bin/env bash
# Adds a worker to an overlay whose workers have identities of their own. See --help.
set -Eeuo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repository/scripts/lib.sh"

usage() {
  cat <<'HELP'
Usage: scripts/add-worker-identity.sh OVERLAY

Gives k8s/overlays/tls, k8s/overlays/island, or a copy of one, its next worker: copies the folder of the last one
(worker-1 to worker-2), and names the new worker wherever kustomization.yaml names the last one. Where the overlay has
certs/ca.key, scripts/dev-certs.sh makes the certificate; elsewhere, make the secret NAME-tls with your own CA.

Apply the overlay afterwards, which starts the worker; `atollctl workers scale N` then has the run remember it. Exit codes: 0 done, 2 this is no such overlay.
HELP
}
die() { echo "add-worker-identity: $*" >&2; exit 2; }

case ${1:-} in -h|--help) usage; exit 0 ;; esac
[ $# -eq 1 ] || die "which overlay? For example k8s/overlays/tls; see --help"
cd "$1" || die "there is no folder $1"
last=-1
while [ -e "worker-$((last + 1))/kustomization.yaml" ]; do last=$((last + 1)); done
[ $last -ge 0 ] || die "$1 has no folder worker-0: its workers have no identities of their own"
next=$((last + 1))
prefix=$(sed -n 's/^namePrefix: *//p' "worker-$last/kustomization.yaml")
before=${prefix}atoll-worker-$last after=${prefix}atoll-worker-$next

cp -R "worker-$last" "worker-$next"
sed -i "s/^nameSuffix: .*/nameSuffix: \"-$next\"/" "worker-$next/kustomization.yaml"
# The lines that name the last worker once more for the next one: its folder, its secret with the five lines after the name, and
# its place in the list of sets that the launcher may scale.
awk -v before="$before" -v after="$after" -v last="worker-$last" -v next_folder="worker-$next" '
  { line = $0 }
  $0 ~ "value: \\[.*" before "\\]" { sub(before "]", before ", " after "]", line) }
  { print line }
  $0 == "  - " last { print "  - " next_folder }
  $0 == "  - name: " before "-tls" { secret = 6 }
  secret > 0 { kept = line; gsub(before, after, kept); block = block kept "\n"; if (--secret == 0) { printf "%s", block } }
' kustomization.yaml >kustomization.new
mv kustomization.new kustomization.yaml
if [ -e certs/ca.key ]; then "$repository/scripts/dev-certs.sh" certs --worker "$after"; fi
echo "added $after; apply $1, then: atollctl workers scale $((next + 1))"
