#!/usr/bin/env bash
# Tests that the README's commands work unchanged on a minimal Debian 12 or 13 that has only apt.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

usage() {
  cat <<'HELP'
Usage: scripts/fresh_machine_test.sh 12|13 [options]

Creates a minimal Debian in a folder with debootstrap, copies the committed source tree (HEAD) into it, and runs the
commands of the README there, as a new user would. Prints the duration of each stage, and for the quickstart the time to the
first training loss. Needs root, debootstrap, git and python3 (scripts/setup.sh --groups fresh), about 12 GB of disk, and a
Debian mirror. Stages:

  base           create the Debian
  try            the README's first block
  killed         scripts/quickstart.sh --kill-a-worker, a short run
  rest           the README's other blocks

  --only STAGE   run only this stage (and base if it is missing; before rest also scripts/setup.sh). Additional stages:
                 setup, quickstart (two rounds, for the time to the first loss), test
  --root DIR     folder of the Debian (default: a new folder under $TMPDIR or /tmp). It must be new, empty, or hold a Debian
                 that this script created and kept; the script reuses and changes it
  --keep         keep the Debian, to inspect it or to reuse it with --root. Without it, the script deletes the Debian at the
                 end, also after Ctrl-C and also if an earlier call kept it
  --mirror URI   Debian mirror (default: the one in this machine's apt configuration)
  -h, --help     this text

The script recognises its Debian by the file .atoll-fresh-machine in DIR. It rejects a folder that has other files but not
this one.

Exit codes: 0 every stage passed, 1 a stage failed or left a process running, 2 wrong usage or a folder that the script did not
create, 3 the machine lacks something (not root, no debootstrap, no mirror).
HELP
}

say() { echo "fresh: $*"; }
die() { local code=$1; shift; echo "fresh: $*" >&2; exit "$code"; }

release= only=all root= keep=no mirror=
while [ $# -gt 0 ]; do
  case "$1" in
    12|13) release=$1 ;;
    --only|--root|--mirror)
      [ $# -ge 2 ] || die 2 "$1 needs a value"
      case "$1" in --only) only=$2 ;; --root) root=$2 ;; --mirror) mirror=$2 ;; esac
      shift ;;
    --keep) keep=yes ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die 2 "unknown argument '$1'" ;;
  esac
  shift
done
case "$release" in 12) suite=bookworm ;; 13) suite=trixie ;; *) usage >&2; die 2 "give the Debian release: 12 or 13" ;; esac
case "$only" in
  all|base|try|killed|rest|setup|test|quickstart) ;;
  *) die 2 "--only takes base, try, killed, rest, setup, quickstart or test, not '$only'" ;;
esac

# Marks a Debian that this script created. It never changes or deletes another folder.
mark=.atoll-fresh-machine
root_was_there=no

mounts_inside() { awk -v r="$root" '$2 == r || index($2, r "/") == 1 { print $2 }' /proc/self/mounts | sort -r; }

# /proc/self/mounts, debootstrap and apt write other characters in ways of their own.
check_characters() {  # OPTION PATH
  [[ $2 =~ ^[a-zA-Z0-9/._+@:=,-]+$ ]] || die 2 "$1 $2: use a path that has only letters, digits and ./_+@:=,-"
}

check_root() {
  local path mounted
  path=$(realpath -m -- "$root") || die 2 "cannot resolve the folder of --root"
  root=$path
  [ "$root" != / ] || die 2 "--root must not be /"
  check_characters --root "$root"
  [ -e "$root" ] || return 0
  [ -d "$root" ] || die 2 "--root $root is not a folder; name a new or empty one"
  # At the end this script unmounts all that is mounted there.
  mounted=$(mounts_inside | paste -sd ' ')
  [ -z "$mounted" ] || die 2 "--root $root: $mounted is mounted. If a killed call of this script left it, unmount it: \
umount --recursive $root; otherwise name another folder"
  [ ! -f "$root/$mark" ] || return 0
  [ -z "$(ls -A "$root")" ] || die 2 "--root $root has files and lacks the mark $mark, so this script did not make it. \
It would overwrite and delete what is there. Name a new or empty folder; if the folder is a Debian that an older version of this \
script made, and nothing in it is needed, create the mark: touch $root/$mark"
  root_was_there=yes
}
if [ -n "$root" ]; then check_root; else check_characters "the folder of temporary files" "${TMPDIR:-/tmp}"; fi

[ "$(id -u)" -eq 0 ] || die 3 "must be root (chroot and mount)"
command -v debootstrap >/dev/null || die 3 "debootstrap is missing; run scripts/setup.sh --groups fresh"

# The mirrors this machine already uses: a chroot must reach the network in the same way as its host.
apt_uri() { apt-get indextargets --format '$(REPO_URI)' "Origin: Debian" "Label: $1" 2>/dev/null | head -n 1; }
mirror=${mirror:-$(apt_uri Debian)}
[ -n "$mirror" ] || die 3 "no Debian mirror in this machine's apt configuration; name one with --mirror URI"
security=$(apt_uri Debian-Security)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

if [ -z "$root" ]; then
  root=$(mktemp -d "${TMPDIR:-/tmp}/atoll-fresh-$release.XXXXXX")
  root=$(realpath -- "$root")
fi
debootstrap_log=$(mktemp)

inside_pids() {  # processes whose root folder is the chroot
  local p
  for p in /proc/[0-9]*; do
    if [ "$(readlink "$p/root" 2>/dev/null)" = "$root" ]; then echo "${p#/proc/}"; fi
  done
}
unmount_all() {
  local target
  while read -r target; do umount "$target" || umount -l "$target"; done < <(mounts_inside)
}
delete_root() {
  if [ "$root_was_there" = yes ]; then
    find "$root" -xdev -mindepth 1 -delete  # the empty folder is its owner's
  else
    rm -rf --one-file-system "$root"
  fi
}
cleanup() {
  local code=$? pid
  trap - EXIT INT TERM
  rm -f "$debootstrap_log"
  [ -f "$root/$mark" ] || exit "$code"
  for pid in $(inside_pids); do kill -KILL "$pid" 2>/dev/null || true; done
  unmount_all
  # Never remove the folder while something is mounted in it: that would empty the host's own /dev.
  if [ "$keep" = no ] && [ -z "$(mounts_inside)" ]; then
    delete_root
  else
    say "left in $root"
  fi
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$root"
echo "Made by Atoll's scripts/fresh_machine_test.sh, which changes and deletes this folder." >"$root/$mark"

copy_network_settings() {
  local file line
  for file in /etc/resolv.conf /etc/hosts; do if [ -e "$file" ]; then cp -L "$file" "$root$file"; fi; done
  mkdir -p "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates" "$root/etc/apt/apt.conf.d"
  if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  fi
  cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
  # Proxies, certificate files and validity checks of the host's apt, without its credentials.
  { apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries)' | grep -vE '//[^/]*@' || true; } \
    >"$root/etc/apt/apt.conf.d/90host"
  while read -r line; do
    if [ -f "$line" ]; then install -D -m 644 "$line" "$root$line"; fi
  done < <(sed -n 's/.*"\(\/[^"]*\)".*/\1/p' "$root/etc/apt/apt.conf.d/90host")
}

write_sources() {
  rm -f "$root"/etc/apt/sources.list.d/*
  {
    echo "deb [signed-by=$keyring] $mirror $suite main"
    echo "deb [signed-by=$keyring] $mirror $suite-updates main"
    if [ -n "$security" ]; then echo "deb [signed-by=$keyring] $security $suite-security main"; fi
  } >"$root/etc/apt/sources.list"
}

make_base() {
  if [ -x "$root/usr/bin/apt-get" ]; then
    say "using the Debian that is in $root"
  else
    debootstrap --variant=minbase --keyring="$keyring" "$suite" "$root" "$mirror" >"$debootstrap_log" 2>&1 ||
      { tail -n 20 "$debootstrap_log" >&2; return 1; }
  fi
  copy_network_settings
  write_sources
  mkdir -p "$root/src"
}

mount_kernel_folders() {
  # As on a machine, / is a mount point: unshare --mount asks for that.
  mount --bind "$root" "$root" && mount --make-rprivate "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
  mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
}

copy_source() {
  rm -rf "$root/src/atoll"
  mkdir -p "$root/src/atoll"
  git archive --format=tar HEAD | tar -x -C "$root/src/atoll"
}

in_chroot() {
  local proxies=() name
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    if [ -n "${!name:-}" ]; then proxies+=("$name=${!name}"); fi
  done
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 TERM="${TERM:-dumb}" "${proxies[@]}" /bin/bash -Eeo pipefail -c "cd /src/atoll
$1" </dev/null
}

# The commands that still run in the chroot. A worker that was told to end may take 20 s for its last push.
left_running() {
  local until=$((SECONDS + 30)) pids p
  while pids=$(inside_pids) && [ -n "$pids" ] && [ $SECONDS -lt $until ]; do sleep 0.5; done
  for p in $pids; do
    printf '%s %s; ' "$p" "$(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | cut -c1-120)"
  done
}

declare -a names times results
failed=no
stage() {  # stage NAME COMMAND...
  local name=$1 start=$SECONDS result=passed left
  shift
  say "stage $name"
  "$@" || result="FAILED ($?)"
  left=$(left_running)
  if [ -n "$left" ]; then result="FAILED (left running: $left)"; fi
  names+=("$name") times+=("$((SECONDS - start))") results+=("$result")
  if [ "$result" != passed ]; then failed=yes; fi
}
wanted() { [ "$only" = all ] || [ "$only" = "$1" ]; }

stage base make_base
if [ "$failed" = no ]; then
  mount_kernel_folders
  copy_source
  if [ "$only" = setup ]; then stage setup in_chroot ./scripts/setup.sh; fi
  if [ "$only" = quickstart ]; then stage quickstart in_chroot "./scripts/quickstart.sh --rounds 2"; fi
  if [ "$only" = test ]; then stage test in_chroot ./scripts/test.sh; fi
  if wanted try; then stage try in_chroot "$(python3 -B tests/docs/readme_blocks.py --print "Try it")"; fi
  if wanted killed; then stage killed in_chroot "./scripts/quickstart.sh --fresh --rounds 6 --kill-a-worker"; fi
  if wanted rest; then
    # In a Debian without the stage try: Python, and the certificates' openssl, come with the packages.
    if ! in_chroot "./scripts/setup.sh --check" >/dev/null 2>&1; then stage setup in_chroot ./scripts/setup.sh; fi
    stage rest in_chroot "python3 -B tests/docs/readme_blocks.py --run 'By hand' --run 'Running for real'"
  fi
fi

say "Debian $release ($suite), $(nproc) cores, $(git rev-parse --short HEAD)"
for i in "${!names[@]}"; do printf 'fresh:   %-12s %6d s  %s\n' "${names[$i]}" "${times[$i]}" "${results[$i]}"; done
[ "$failed" = no ]
