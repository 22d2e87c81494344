#!/usr/bin/env bash
# Creates certificates for trials of TLS: a CA, and certificates for a coordinator, workers and operators. See --help.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'HELP'
Creates certificates for a run: a CA, and with it a certificate for the coordinator, for each worker and for each
operator. Use it for trials and small runs. If you already have a CA (cert-manager, SPIFFE, step-ca), use that instead.

  scripts/dev-certs.sh certs                              CA, coordinator on this machine, workers w0 to w3, operator you
  scripts/dev-certs.sh certs --host coordinator.example   the coordinator is also reached under this name
  scripts/dev-certs.sh certs --worker gpu-1 --worker gpu-2
                                                          only these workers; an existing CA signs additional ones
  scripts/dev-certs.sh certs --renew --worker gpu-1       replace a certificate; programs reload it without a restart
  scripts/dev-certs.sh certs --renew --coordinator        the same for the coordinator; keeps its host names
  scripts/dev-certs.sh certs --separate-admin-ca          use a separate CA for operators (admin-ca.pem)

Then start the programs, with all files in one folder DIR:
  atoll-coordinator --tls-cert DIR/coordinator.pem --tls-key DIR/coordinator.key --tls-ca DIR/ca.pem ...
                    (with --separate-admin-ca: --tls-admin-ca DIR/admin-ca.pem)
  atoll-worker      --tls-cert DIR/worker-w0.pem --tls-key DIR/worker-w0.key --tls-ca DIR/ca.pem --name w0 ...
  atollctl          --tls-cert DIR/admin-ann.pem --tls-key DIR/admin-ann.key --tls-ca DIR/ca.pem status

The subject alternative name of a certificate identifies its holder:
  coordinator       DNS names and addresses under which clients reach it
  worker NAME       URI spiffe://atoll/worker/NAME: can join only as NAME
  observer NAME     URI spiffe://atoll/observer/NAME: can only read
  operator NAME     URI spiffe://atoll/admin/NAME: can do everything; the audit log has this name

Options:
  --host NAME          name or address of the coordinator, besides localhost, 127.0.0.1 and ::1; may be given again. With
                       --renew: in place of the names that it has; without --host it keeps them
  --worker NAME        may be given again
  --observer NAME      may be given again
  --admin NAME         may be given again
  --coordinator        only with other names given: the coordinator's, too
  --days N             how long they are valid (90); the CA's own ten years
  --separate-admin-ca  a CA of its own for operators
  --new-ca             with --renew: another CA signs from now on. ca.pem then has the new and the old one, so that
                       certificates of both are accepted; the old one is kept in ca-old.pem and ca-old.key. How to end
                       the change: docs/guides/security.md, "Rotate"
  --renew              replace what is there; without it nothing is ever overwritten
  -h, --help

Keys have mode 0600. Anyone who has the CA's key (ca.key) can create valid certificates. The coordinator and the workers do
not need it, so keep it on a machine without network services. Exit codes: 0 done, 1 openssl failed, 2 wrong usage or a
file exists already.
HELP
}

die() { echo "dev-certs: $*" >&2; exit 2; }

dir="" days=90 renew=no new_ca=no separate=no coordinator=no
hosts=(localhost 127.0.0.1 ::1) names=() named_hosts=no
while [ $# -gt 0 ]; do
  case $1 in
    --host|--worker|--observer|--admin|--days) [ $# -ge 2 ] || die "$1 needs a value; see --help" ;;
  esac
  case $1 in
    --host) named_hosts=yes
            [[ " ${hosts[*]} " == *" $2 "* ]] || hosts+=("$2"); shift 2 ;;
    --worker|--observer|--admin) names+=("${1#--} $2"); shift 2 ;;
    --coordinator) coordinator=yes; shift ;;
    --days) days=$2; shift 2 ;;
    --separate-admin-ca) separate=yes; shift ;;
    --new-ca) new_ca=yes; shift ;;
    --renew) renew=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) die "unknown option '$1'; see --help" ;;
    *) [ -z "$dir" ] || die "one folder, not '$dir' and '$1'; see --help"
       dir=$1; shift ;;
  esac
done
[ -n "$dir" ] || die "give a folder, for example: scripts/dev-certs.sh certs; see --help"
[[ $days =~ ^-?[0-9]{1,5}$ ]] || die "--days takes a number, not '$days'"
days=${days%%[0-9]*}$((10#${days#-}))  # decimal, also with zeros before it
[ $new_ca = no ] || [ $renew = yes ] || die "--new-ca replaces a CA: also give --renew"
command -v openssl >/dev/null || die "openssl is missing; install it (apt-get install openssl)"
for entry in "${names[@]}"; do
  name=${entry#* }
  [[ $name =~ ^[a-z0-9][a-z0-9.-]{0,62}$ ]] || die "'$name' is not a valid name; allowed: at most 63 of a-z 0-9 . -"
done
if [ ${#names[@]} -eq 0 ] && [ $coordinator = no ]; then
  me=$(id -un | tr -c 'a-z0-9.\n-' '-')
  names=("worker w0" "worker w1" "worker w2" "worker w3" "admin $me")
  coordinator=yes
fi

umask 077
mkdir -p "$dir"
# Keys are never to be committed, wherever the folder lies.
[ -e "$dir/.gitignore" ] || echo '*' >"$dir/.gitignore"
work=$(mktemp -d "$dir/.making.XXXXXX")
trap 'rm -rf "$work"' EXIT

run() { openssl "$@" 2>"$work/errors" || { cat "$work/errors" >&2; echo "dev-certs: openssl $1 failed" >&2; exit 1; }; }
new_key() { run genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
# The key last: a reader that finds a new key has the new certificate, or sees that they do not fit and waits.
put() { mv -f "$work/$1.pem" "$dir/$1.pem"; mv -f "$work/$1.key" "$dir/$1.key"; chmod 0644 "$dir/$1.pem"; }

# In the way: told before anything is made.
refuse() {
  [ $renew = no ] || return 0
  for file in "$dir/$1.pem" "$dir/$1.key"; do
    [ ! -e "$file" ] || die "$file exists already; replace it with --renew, or give another folder"
  done
}

# The old CA of one change at a time: its key may still be needed.
refuse_old_ca() {  # FILE
  local file
  for file in "$1.pem" "$1.key"; do
    if [ -e "$dir/${file/./-old.}" ] && ! cmp -s "$dir/$file" "$dir/${file/./-old.}"; then
      die "$dir/${file/./-old.} is there, of an earlier --new-ca. When no certificate of that CA is in use any more, take it out \
of $1.pem and delete $1-old.pem and $1-old.key (docs/guides/security.md, \"Rotate\")"
    fi
  done
}

keep_old_ca() {  # FILE
  if [ -e "$dir/$1.pem" ]; then cp -pf "$dir/$1.pem" "$dir/$1-old.pem"; fi
  if [ -e "$dir/$1.key" ]; then cp -pf "$dir/$1.key" "$dir/$1-old.key"; fi
}

make_ca() {  # FILE NAME
  if [ -e "$dir/$1.key" ] && [ $new_ca = no ]; then return; fi
  [ ! -e "$dir/$1.pem" ] || [ $new_ca = yes ] || die "$dir/$1.pem exists without its key: put $1.key back to sign with it"
  new_key "$work/$1.key"
  run req -x509 -new -key "$work/$1.key" -out "$work/$1.pem" -days 3650 -subj "/CN=$2 $(date -u +%Y%m%d%H%M%S)" \
    -addext "keyUsage=critical,keyCertSign,cRLSign"
  if [ ! -e "$dir/$1.pem" ]; then
    put "$1"
    echo "made $dir/$1.pem"
    return
  fi
  keep_old_ca "$1"
  # The new one first: openssl signs with the first certificate of the file.
  cat "$dir/$1-old.pem" >>"$work/$1.pem"
  put "$1"
  echo "made $dir/$1.pem, with the old CA behind the new one; $1-old.pem and $1-old.key keep the old one"
}

# OpenSSL 3.5 takes no end before the start, and 3.0 no start but now.
validity=(-days "$days")
if [ "$days" -lt 0 ] && [[ $(openssl x509 -help 2>&1) == *-not_before* ]]; then
  validity=(-not_before "$(date -u -d "$((days - 1)) days" +%Y%m%d%H%M%SZ)" -not_after "$(date -u -d "$days days" +%Y%m%d%H%M%SZ)")
fi

make_certificate() {  # FILE CA COMMON_NAME SAN USAGE
  new_key "$work/$1.key"
  run req -new -key "$work/$1.key" -subj "/CN=$3" -out "$work/request"
  printf 'subjectAltName=%s\nextendedKeyUsage=%s\nkeyUsage=critical,digitalSignature\nbasicConstraints=critical,CA:false\n' \
    "$4" "$5" >"$work/extensions"
  run x509 -req -in "$work/request" -CA "$dir/$2.pem" -CAkey "$dir/$2.key" -set_serial "0x$(openssl rand -hex 16)" \
    "${validity[@]}" -extfile "$work/extensions" -out "$work/$1.pem"
  put "$1"
  echo "made $dir/$1.pem, for $4"
}

# Sets san to the coordinator's names: those of its certificate, when it is renewed and the call names none.
find_host_names() {
  local all=() host
  if [ $renew = yes ] && [ $named_hosts = no ] && [ -e "$dir/coordinator.pem" ]; then
    san=$(openssl x509 -in "$dir/coordinator.pem" -noout -ext subjectAltName 2>/dev/null |
      sed -nE '2 { s/IP Address:/IP:/g; s/ //g; p }') || true
    [ -n "$san" ] || die "cannot read the host names in $dir/coordinator.pem; name them with --host"
    return
  fi
  for host in "${hosts[@]}"; do
    if [[ $host =~ ^[0-9.]+$ || $host == *:* ]]; then all+=("IP:$host"); else all+=("DNS:$host"); fi
  done
  local IFS=,
  san="${all[*]}"
}

[ $coordinator = no ] || refuse coordinator
for entry in "${names[@]}"; do refuse "${entry% *}-${entry#* }"; done
[ ! -e "$dir/admin-ca.key" ] || separate=yes
if [ $new_ca = yes ]; then
  refuse_old_ca ca
  [ $separate = no ] || refuse_old_ca admin-ca
fi
[ $coordinator = no ] || find_host_names
make_ca ca "Atoll development CA"
[ $separate = no ] || make_ca admin-ca "Atoll operators' CA"

[ $coordinator = no ] || make_certificate coordinator ca coordinator "$san" serverAuth
for entry in "${names[@]}"; do
  role=${entry% *} name=${entry#* } ca=ca
  [ "$role$separate" != adminyes ] || ca=admin-ca
  make_certificate "$role-$name" "$ca" "$name" "URI:spiffe://atoll/$role/$name" clientAuth
done
