#!/usr/bin/env bash
# Adds a worker to an overlay whose workers have separate identities. See --help.
set -Eeuo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$repository/scripts/lib.sh"

usage() {
  cat <<'HELP'
Usage: scripts/add-worker-identity.sh OVERLAY

Adds the next worker to k8s/overlays/tls, to k8s/overlays/island, or to a copy of one of them. Copies the folder of the last
worker (worker-1 to worker-2) and adds the new name to kustomization.yaml wherever the last worker is named. If the overlay
has certs/ca.key, scripts/dev-certs.sh creates the certificate. If that key is elsewhere (as for an island), create
certs/worker-NAME.pem and .key there and copy both. With another CA, let it create the secret NAME-tls.

Then apply the overlay, which starts the worker, and run `atollctl workers scale N`, so that the run remembers it. (An island
has no launcher, so there is nothing to scale.) A failure changes nothing in the overlay. Exit codes: 0 done, 1 the
certificate could not be created, 2 OVERLAY is not such an overlay.
HELP
}
die() { echo "add-worker-identity: $*" >&2; exit 2; }

case ${1:-} in -h|--help) usage; exit 0 ;; esac
[ $# -eq 1 ] || die "give one overlay, for example k8s/overlays/tls; see --help"
# Printed paths are relative to the caller's folder.
caller=$PWD overlay=${1%/}
cd "$1" || die "folder $1 does not exist"
last=-1
while [ -e "worker-$((last + 1))/kustomization.yaml" ]; do last=$((last + 1)); done
[ $last -ge 0 ] || die "$1 has no folder worker-0: its workers do not have separate identities"
next=$((last + 1))
prefix=$(sed -n 's/^namePrefix: *//p' "worker-$last/kustomization.yaml")
before=${prefix}atoll-worker-$last after=${prefix}atoll-worker-$next

[ ! -e "worker-$next" ] || die "$1/worker-$next exists already, without a kustomization.yaml; move it away first"

# Create everything in a temporary folder and move it last, so that a failure does not change the overlay.
made=$(mktemp -d .adding.XXXXXX)
trap 'rm -rf "$made"' EXIT
cp -R "worker-$last" "$made/folder"
sed -i "s/^nameSuffix: .*/nameSuffix: \"-$next\"/" "$made/folder/kustomization.yaml"
# Repeat the lines of the last worker for the next one: its folder, its secret with the five lines after the name, and its entry
# in the list of sets that the launcher may scale.
awk -v before="$before" -v after="$after" -v last="worker-$last" -v next_folder="worker-$next" '
  { line = $0 }
  $0 ~ "value: \\[.*" before "\\]" { sub(before "]", before ", " after "]", line); listed = 1 }
  /resourceNames/ { list = 1 }
  /secretGenerator/ { secrets = 1 }
  { print line }
  $0 == "  - " last { print "  - " next_folder; folder = 1 }
  $0 == "  - name: " before "-tls" { secret = 6 }
  secret > 0 { kept = line; gsub(before, after, kept); block = block kept "\n"; if (--secret == 0) { printf "%s", block; made = 1 } }
  END {
    if (!folder) missing = "\"  - " last "\" among the resources"
    else if (list && !listed) missing = "a list that ends with \"" before "]\", of what the launcher may scale"
    else if (secrets && !made) missing = "\"  - name: " before "-tls\" with five lines after it, in secretGenerator"
    if (missing) { print missing >"/dev/stderr"; exit 1 }
  }
' kustomization.yaml >"$made/kustomization.yaml" 2>"$made/missing" ||
  die "$1/kustomization.yaml lacks $(cat "$made/missing"); nothing was changed. Add $after by hand; the top of that file lists the places"
certificate=certs/worker-$after.pem
if [ -e certs/ca.key ] && [ ! -e "$certificate" ]; then
  env -C "$caller" "$repository/scripts/dev-certs.sh" "$overlay/certs" --worker "$after"
fi
mv "$made/folder" "worker-$next"
mv "$made/kustomization.yaml" kustomization.yaml
[ -e "$certificate" ] || ! grep -q "$certificate" kustomization.yaml ||
  echo "$overlay/$certificate and .key are missing: sign them where ca.key is (scripts/dev-certs.sh DIR --worker $after), and" \
    "copy both to $overlay/certs"
if [ -n "$prefix" ]; then echo "added $after; apply $1"; else echo "added $after; apply $1, then: atollctl workers scale $((next + 1))"; fi
