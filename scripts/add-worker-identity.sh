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
certs/ca.key, scripts/dev-certs.sh makes the certificate. Where that key is elsewhere (an island), sign certs/worker-NAME.pem
and .key there and copy both. With another CA, make the secret NAME-tls by it.

Apply the overlay afterwards, which starts the worker; `atollctl workers scale N` then has the run remember it. (An island has
no launcher: there is nothing to scale.) What fails changes nothing in the overlay. Exit codes: 0 done, 1 the certificate was
not made, 2 this is no such overlay.
HELP
}
die() { echo "add-worker-identity: $*" >&2; exit 2; }

case ${1:-} in -h|--help) usage; exit 0 ;; esac
[ $# -eq 1 ] || die "which overlay? For example k8s/overlays/tls; see --help"
# Paths that are printed are the caller's, who is in another folder.
caller=$PWD overlay=${1%/}
cd "$1" || die "there is no folder $1"
last=-1
while [ -e "worker-$((last + 1))/kustomization.yaml" ]; do last=$((last + 1)); done
[ $last -ge 0 ] || die "$1 has no folder worker-0: its workers have no identities of their own"
next=$((last + 1))
prefix=$(sed -n 's/^namePrefix: *//p' "worker-$last/kustomization.yaml")
before=${prefix}atoll-worker-$last after=${prefix}atoll-worker-$next

[ ! -e "worker-$next" ] || die "$1/worker-$next is there already, without a kustomization.yaml; move it away first"

# Everything is made beside what it replaces, and moved there last: what fails leaves the overlay as it was.
made=$(mktemp -d .adding.XXXXXX)
trap 'rm -rf "$made"' EXIT
cp -R "worker-$last" "$made/folder"
sed -i "s/^nameSuffix: .*/nameSuffix: \"-$next\"/" "$made/folder/kustomization.yaml"
# The lines that name the last worker once more for the next one: its folder, its secret with the five lines after the name, and
# its place in the list of sets that the launcher may scale.
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
  die "$1/kustomization.yaml lacks $(cat "$made/missing"); nothing is changed. Add $after by hand: the top of that file says where"
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
