#!/usr/bin/env bash
# Publishes a release: builds, pushes and signs the images and the Helm chart. See --help.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/release.sh --registry REGISTRY [options]

Builds the container images of the committed source, pushes them and the chart of the same source to REGISTRY, and signs all:

  REGISTRY/atoll/coordinator:VERSION
  REGISTRY/atoll/worker-cpu:VERSION
  REGISTRY/atoll/worker-cuda:VERSION        only with --libtorch
  oci://REGISTRY/atoll/charts/atoll         VERSION; its value `registry` is REGISTRY

VERSION comes from CMakeLists.txt. Log in to the registry first (docker login, podman login or skopeo login). The source is
`git archive HEAD`. The script publishes nothing while there are uncommitted changes, and files that git does not track
(certificates, keys, packages) never get into an image or the chart.

  --registry NAME   host and path, for example ghcr.io/acme
  --key FILE        sign with this private key (EC, P-256, PEM); create one with:
                      openssl ecparam -genkey -name prime256v1 -noout -out release.key
                      openssl ec -in release.key -pubout -out release.pub
  --no-sign         push without signatures
  --engine NAME     docker, podman or buildah (default: the first that is installed)
  --only LIST       publish only these: coordinator, worker-cpu, worker-cuda, chart, separated by commas
  --base IMAGE      base image instead of debian:trixie-slim
  --build-arg A=B   pass this to the build of every image; repeatable
  --libtorch DIR    LibTorch with CUDA, for worker-cuda; --build-base IMAGE: a base with CUDA's compiler
  --no-build        push existing images of the same names; their sources are not checked
  --helm PROGRAM    helm program (default: helm)
  --plain-http      the registry has no TLS: a registry on this machine
  --out FILE        write the list of pushed images and their digests to FILE (default: build/release-VERSION.txt)
  -h, --help        this text

Signatures have the format of cosign (its SIGNATURE_SPEC.md) and are created with openssl. Each has the tag
sha256-DIGEST.sig in the repository of its image. Check it with the public key, using one of
  cosign verify --key release.pub --insecure-ignore-tlog=true REGISTRY/atoll/coordinator:VERSION
  a policy `sigstoreSigned` of podman or CRI-O (containers-policy.json; Debian 12's podman is built without it)

Exit codes: 0 everything was pushed, 1 something failed, 2 wrong usage or a program is missing.
HELP
}

die() { echo "release: $*" >&2; exit 2; }
say() { echo "release: $*"; }

registry='' key='' sign=yes engine='' only='' base='' libtorch='' build_base='' build=yes helm=helm http=no out=''
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --registry|--key|--engine|--only|--base|--build-arg|--libtorch|--build-base|--helm|--out)
      [ $# -ge 2 ] || die "$1 needs a value; see --help" ;;
  esac
  case $1 in
    --registry) registry=${2%/}; shift ;;
    --key) key=$2; shift ;;
    --engine) engine=$2; shift ;;
    --only) only=$2; shift ;;
    --base) base=$2; shift ;;
    --build-arg) arguments+=(--build-arg "$2"); shift ;;
    --libtorch) libtorch=$2; shift ;;
    --build-base) build_base=$2; shift ;;
    --helm) helm=$2; shift ;;
    --out) out=$2; shift ;;
    --no-sign) sign=no ;;
    --no-build) build=no ;;
    --plain-http) http=yes ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done

version=$(sed -n 's/^project(atoll VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=${out:-build/release-$version.txt}
parts=coordinator,worker-cpu,chart
if [ -n "$libtorch" ]; then parts=coordinator,worker-cpu,worker-cuda,chart; fi
parts=${only:-$parts}

check() {
  local part program changed needed=(skopeo sha256sum)
  [ -n "$registry" ] || die "give the registry, for example --registry ghcr.io/acme; see --help"
  [[ $registry != *://* ]] || die "--registry is a host and a path, without '${registry%%://*}://'"
  for part in ${parts//,/ }; do
    case $part in
      coordinator|worker-cpu|worker-cuda) images=yes ;;
      chart) needed+=("$helm") ;;
      *) die "--only: unknown part '$part'; see --help" ;;
    esac
  done
  if [ $sign = yes ]; then
    [ -n "$key" ] || die "give --key FILE to sign the release (--help shows how to create one), or --no-sign to publish it unsigned"
    openssl pkey -in "$key" -noout -text 2>/dev/null | grep -q prime256v1 || die "$key is not a private key on the curve P-256"
    needed+=(openssl)
  fi
  if [ "${images:-no}" = yes ]; then
    for program in docker podman buildah; do
      if [ -z "$engine" ] && command -v $program >/dev/null; then engine=$program; fi
    done
    needed+=("${engine:?release: none of docker, podman and buildah is installed}")
  fi
  changed=$(git status --porcelain --untracked-files=no 2>/dev/null) ||
    die "this is not a git checkout; only a committed revision can be published"
  [ -z "$changed" ] || die "there are uncommitted changes, but a release must be a revision that others can read. \
Commit them, or look at them with git status"
  for program in "${needed[@]}"; do command -v "$program" >/dev/null || die "$program is not installed"; done
}

# Options of the programs that speak to a registry without TLS.
copying=() inspecting=() helming=() pushing=()
if [ $http = yes ]; then
  copying=(--dest-tls-verify=false) inspecting=(--tls-verify=false) helming=(--plain-http)
fi

build_image() {  # build_image PART TAG
  local command=("$engine" build)
  if [ "$engine" = buildah ]; then command=(buildah bud); fi
  # buildah finds the stage that an argument names only when the argument is given; its default in the Dockerfile does not count.
  command+=(--build-arg PACKAGES=build)
  if [ -n "$base" ]; then command+=(--build-arg "BASE=$base"); fi
  if [ "$1" = worker-cuda ]; then
    command+=(--build-context "libtorch=${libtorch:?release: worker-cuda needs --libtorch DIR}")
    if [ -n "$build_base" ]; then command+=(--build-arg "BUILD_BASE=$build_base"); fi
  fi
  "${command[@]}" "${arguments[@]}" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
    -f "$source/k8s/images/$1.Dockerfile" -t "$2" "$source"
}

push_image() {  # push_image TAG
  local command=("$engine" push)
  if [ $http = yes ] && [ "$engine" != docker ]; then pushing=(--tls-verify=false); fi
  "${command[@]}" "${pushing[@]}" "$1"
}

push_chart() {
  cp -R "$source/k8s/chart" "$work/chart"
  sed -i "s|^registry: \"\"\$|registry: \"$registry\"|" "$work/chart/values.yaml"
  grep -q "^registry: \"$registry\"\$" "$work/chart/values.yaml"
  "$helm" package --version "$version" --app-version "$version" --destination "$work" "$work/chart" >/dev/null
  "$helm" push "${helming[@]}" "$work/atoll-$version.tgz" "oci://$registry/atoll/charts"
}

blob() {  # blob FILE: puts it into the OCI layout and prints its digest
  local digest
  digest=$(sha256sum <"$1" | cut -d ' ' -f 1)
  cp "$1" "$layout/blobs/sha256/$digest"
  echo "sha256:$digest"
}
size() { wc -c <"$1" | tr -d ' '; }

# An image with one layer, the signed text, and the signature in an annotation: cosign's SIGNATURE_SPEC.md.
sign_digest() {  # sign_digest REPOSITORY DIGEST
  local layer config manifest signature
  layout=$(mktemp -d "$work/signature.XXXXXX")
  mkdir -p "$layout/blobs/sha256"
  printf '{"critical":{"identity":{"docker-reference":"%s"},"image":{"docker-manifest-digest":"%s"},"type":"cosign container image signature"},"optional":null}' \
    "$1" "$2" >"$layout/payload"
  signature=$(openssl dgst -sha256 -sign "$key" "$layout/payload" | base64 -w 0)
  layer=$(blob "$layout/payload")
  printf '{"architecture":"","os":"","config":{},"rootfs":{"type":"layers","diff_ids":["%s"]}}' "$layer" >"$layout/config"
  config=$(blob "$layout/config")
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":%d,"digest":"%s"},"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","size":%d,"digest":"%s","annotations":{"dev.cosignproject.cosign/signature":"%s"}}]}' \
    "$(size "$layout/config")" "$config" "$(size "$layout/payload")" "$layer" "$signature" >"$layout/manifest"
  manifest=$(blob "$layout/manifest")
  printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
  printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":%d,"digest":"%s"}]}' \
    "$(size "$layout/manifest")" "$manifest" >"$layout/index.json"
  rm "$layout/payload" "$layout/config" "$layout/manifest"
  skopeo copy --quiet --preserve-digests "${copying[@]}" "oci:$layout" "docker://$1:${2/:/-}.sig"
}

finish() {  # finish REPOSITORY: what was pushed there, by digest, signed
  local digest
  digest=sha256:$(skopeo inspect --raw "${inspecting[@]}" "docker://$1:$version" | sha256sum | cut -d ' ' -f 1)
  if [ $sign = yes ]; then sign_digest "$1" "$digest"; fi
  echo "$1:$version@$digest" | tee -a "$work/list"
}

check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
revision=$(git rev-parse HEAD)
source=$work/source
mkdir "$source"
git -c tar.umask=0022 archive --format=tar HEAD | tar -x -C "$source"
for part in ${parts//,/ }; do
  if [ "$part" = chart ]; then
    say "chart $version"
    push_chart
    finish "$registry/atoll/charts/atoll"
    continue
  fi
  tag=$registry/atoll/$part:$version
  if [ $build = yes ]; then
    say "building $tag"
    build_image "$part" "$tag"
  fi
  say "pushing $tag"
  push_image "$tag"
  finish "$registry/atoll/$part"
done
mkdir -p "$(dirname "$out")"
cp "$work/list" "$out"
if [ $sign = yes ]; then openssl dgst -sha256 -sign "$key" -out "$out.sig" "$out"; fi
say "published; the digests are in $out. Install with: helm install atoll oci://$registry/atoll/charts/atoll --version $version"
