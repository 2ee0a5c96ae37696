#!/usr/bin/env bash
# README's two commands on machines that have nothing but Python: minimal systems, made from the distribution's packages.
#
#   tests/run.sh fresh [--share] [SUITE...]      Debian suites; bookworm and trixie if none is named
#
# Each suite makes two machines. On the first one root runs ./smoke.sh and ./tests/run.sh. On the second one a user
# without sudo runs ./smoke.sh, is told one line, root runs that line, and the user runs ./smoke.sh and ./tests/run.sh.
# With --share, ./tests/run.sh runs on one machine of each suite: as root on the first, as the user on the next, in turn.
# What is tested is what is committed: each machine has a clone.
#
# A machine is a directory with mounts and processes of its own (namespaces); they end with it, and the directory is
# removed however this ends. The base systems are kept for a week under AOTEST_FRESH_CACHE (~/.cache/agent-fleet-fresh).
# Packages come from where this machine gets its own; its proxies, its pip settings and its certificates are used.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
checkout=$PWD
cache=${AOTEST_FRESH_CACHE:-${HOME:-/root}/.cache/agent-fleet-fresh}
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
share=
[ "${1:-}" != --share ] || { share=1; shift; }
suites=("$@")
[ $# -gt 0 ] || suites=(bookworm trixie)

skip() { printf 'fresh: skipped: %s\n' "$*"; exit 0; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

for suite in "${suites[@]}"; do
  case $suite in '' | *[!a-z]*) die "no suite is called '$suite': name Debian suites, such as bookworm, trixie or sid" ;; esac
done
[ "$(id -u)" = 0 ] || skip "only root can make a system inside this one"
unshare -m -p -f true 2>/dev/null || skip "this machine does not allow mounts and processes of one's own (unshare)"
if ! command -v debootstrap >/dev/null; then
  command -v apt-get >/dev/null || skip "there is no debootstrap here, and no apt-get to install it with"
  { apt-get update -qq && apt-get install -y -qq debootstrap; } >/dev/null 2>&1 || skip "debootstrap could not be installed"
fi
mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed -nE 's/^URIs: *([^ ]+).*/\1/p' | head -n 1)
[ -n "$mirror" ] || mirror=$(sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
[ -n "$mirror" ] || skip "this machine names no package source (/etc/apt)"
[ -z "$(git status --porcelain)" ] || echo "fresh: what is not committed is not tested" >&2

work=$(mktemp -d "${TMPDIR:-/tmp}/aotest-fresh-XXXXXX") || exit 2
jobs=()
inner=  # the process that holds a machine's namespaces
pids=()
tidy() {
  local code=$? pid
  trap - EXIT INT TERM HUP
  [ "$code" != 143 ] || unfinished
  for pid in "${pids[@]:-}"; do [ -z "$pid" ] || kill "$pid" 2>/dev/null; done
  for pid in "${pids[@]:-}"; do [ -z "$pid" ] || wait "$pid" 2>/dev/null; done
  gone "$work"
  exit "$code"
}
unfinished() {  # what each machine was doing when this was ended from outside
  local n file
  for n in "${!jobs[@]}"; do
    [ -n "${pids[$n]}" ] || continue
    printf '\n== %s was still running; the end of its log:\n' "${jobs[$n]}"
    tail -n 5 "$work/${jobs[$n]}.log"
    for file in "$work/${jobs[$n]}"/tmp/aotest-*/running/*; do
      [ ! -s "$file" ] || printf '\nit was still running: %s' "$(cat "$file")"
    done
    echo
  done
}
gone() {  # what was killed may be on its way out still, and write: again, until nothing is left
  local tries
  for tries in {1..60}; do
    rm -rf --one-file-system "$1" 2>/dev/null && return 0
    sleep 0.5
  done
  printf 'error: %s could not be removed\n' "$1" >&2
}
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

base() {  # base SUITE: the kept system of it, made when there is none or when it is a week old
  local suite=$1 log=$work/$1.debootstrap
  flock 9  # the systems are shared with other runs
  if [ -n "$(find "$cache/$suite.made" -mtime -7 2>/dev/null)" ]; then return 0; fi
  rm -rf --one-file-system "${cache:?}/$suite" "$cache/$suite.made"
  if [ -z "${http_proxy:-}" ]; then  # debootstrap does not ask apt for it
    http_proxy=$(apt-config shell P Acquire::http::Proxy 2>/dev/null | sed -nE "s/^P='(.*)'\$/\1/p")
    [ -z "$http_proxy" ] || export http_proxy
  fi
  if ! debootstrap --variant=minbase --include=python3,ca-certificates "$suite" "$cache/$suite" "$mirror" >"$log" 2>&1; then
    tail -n 3 "$log" | sed -E 's#[a-z]+://[^ ]+#...#g'
    rm -rf --one-file-system "${cache:?}/$suite"
    grep -qE 'Failed getting release file|Couldn.t download|Unknown suite|No such script' "$log" && return 3
    return 1
  fi
  rm -rf "$cache/$suite"/var/lib/apt/lists/* "$cache/$suite"/var/cache/apt/archives/*.deb
  touch "$cache/$suite.made"
}

make() {  # make SUITE USER: a machine of this suite, with that user and a clone of this checkout in the user's home
  local conf home
  machine=$work/$1-$2
  (flock -s 9 && cp -a --reflink=auto "$cache/$1" "$machine") 9<"$cache/lock" || return 1
  grep -lE '^ *Acquire' /etc/apt/apt.conf.d/* /etc/apt/apt.conf 2>/dev/null | while read -r conf; do
    cp "$conf" "$machine/etc/apt/apt.conf.d/"
  done
  cp -L /etc/resolv.conf /etc/hosts "$machine/etc/" 2>/dev/null
  mkdir -p "$machine/etc/ssl/certs"
  cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$machine/etc/ssl/certs/ca-certificates.crt" 2>/dev/null
  [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$machine/etc/pip.conf"
  [ "$2" = root ] || chroot "$machine" useradd -m -s /bin/bash "$2" || return 1
  home=$(chroot "$machine" /bin/sh -c "echo ~$2")
  if [ -e ~/.config/pip/pip.conf ]; then
    mkdir -p "$machine$home/.config/pip"
    cp -L ~/.config/pip/pip.conf "$machine$home/.config/pip/"
  fi
  clone=$home/agent-fleet
  git clone -q "$checkout" "$machine$clone" || return 1
  chroot "$machine" chown -R "$2": "$home"
}

settings() {  # what a person would have set on that machine too: proxies, indexes (paths lead nowhere there), CI
  local name
  while read -r name; do
    case $name in
      http_proxy | https_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | ALL_PROXY | CI) ;;
      PIP_* | UV_*) ;;
      *) continue ;;
    esac
    case ${!name} in /* | file:*) ;; *) printf '%s=%s\0' "$name" "${!name}" ;; esac
  done < <(compgen -e)
  [ -z "${SSL_CERT_FILE:-}${PIP_CERT:-}" ] || printf 'PIP_CERT=%s\0' /etc/ssl/certs/ca-certificates.crt
}

inside() {  # inside USER COMMAND: run it on the machine, in the user's clone, with an environment of its own
  local user=$1 code
  local environment=("HOME=$(chroot "$machine" /bin/sh -c "echo ~$user")" "USER=$user" "LOGNAME=$user" SHELL=/bin/bash TERM=xterm "PATH=$path")
  while IFS= read -r -d '' setting; do environment+=("$setting"); done < <(settings)
  # The mounts are the namespace's own: they go when its last process does. All of it ends with unshare.
  unshare -m -p -f --kill-child /bin/bash -c '
    set -e
    root=$1 uid=$2 gid=$3
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    while read -r name major minor; do mknod -m 666 "$root/dev/$name" c "$major" "$minor"; done <<NODES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
NODES
    mkdir "$root/dev/pts" "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    shift 3
    exec chroot --userspec="$uid:$gid" --groups="$gid" "$root" /usr/bin/env -i "$@"
  ' fresh "$machine" "$(chroot "$machine" id -u "$user")" "$(chroot "$machine" id -g "$user")" \
    "${environment[@]}" /bin/bash -c "cd $clone && $2" </dev/null &
  inner=$!
  wait "$inner"
  code=$?
  inner=
  return "$code"
}

told() { printf -- '-- %s: %s\n' "$who" "$*"; }

must() {  # must USER COMMAND: it exits with 0
  local begun=$SECONDS code
  told "$1\$ $2"
  inside "$1" "$2"
  code=$?
  told "exit $code after $((SECONDS - begun))s"
  return "$code"
}

as_root() {
  make "$1" root && must root ./smoke.sh && suite_as root
}

suite_as() {  # suite_as USER: the whole suite, unless another machine has this part
  [ -z "$share" ] || [ "$1" = "$turn" ] || { told "./tests/run.sh: runs as $turn here"; return 0; }
  must "$1" ./tests/run.sh
}

as_user() {
  local line said=$work/$1-user.said
  make "$1" user || return 1
  told "user\$ ./smoke.sh (tmux, git and venv are missing)"
  inside user ./smoke.sh >"$said" 2>&1
  [ $? = 2 ] || { cat "$said"; told "./smoke.sh does not exit with 2 where tmux is missing"; return 1; }
  cat "$said"
  line=$(grep -E '^ +apt-get ' "$said" | sed 's/^ *//')
  [ -n "$line" ] && [ "$(wc -l <<<"$line")" = 1 ] || { told "it does not print one command"; return 1; }
  must root "$line" && must user ./smoke.sh && suite_as user
}

versions() {
  inside root 'echo "$(python3 -V), $(tmux -V), git $(git --version | cut -d" " -f3)"' 2>/dev/null
}

run() {  # run SUITE ROLE: one machine from its making to its removal
  local code
  who="$1 $2"
  trap '[ -z "$inner" ] || kill -KILL "$inner" 2>/dev/null; exit 143' TERM
  if [ "$2" = root ]; then as_root "$1"; else as_user "$1"; fi
  code=$?
  versions >"$work/$1-$2.versions"
  gone "${machine:?}"
  return "$code"
}

main() {
  mkdir -p "$cache" || exit 2
  exec 9>"$cache/lock"
  begun=$SECONDS
  failed=()
  turn=user
  for suite in "${suites[@]}"; do
    base "$suite"
    code=$?
    flock -u 9
    case $code in
      0) ;;
      3) echo "fresh: $suite skipped: its packages could not be fetched"; continue ;;
      *) failed+=("$suite: the base system could not be made"); continue ;;
    esac
    if [ "$turn" = root ]; then turn=user; else turn=root; fi
    for role in root user; do
      (trap - EXIT INT; run "$suite" "$role") >"$work/$suite-$role.log" 2>&1 9>&- &
      pids+=($!)
      jobs+=("$suite-$role")
      echo "fresh: $suite as $role"
    done
  done
  for n in "${!jobs[@]}"; do
    job=${jobs[$n]}
    wait "${pids[$n]}"
    code=$?
    pids[n]=
    if [ "$code" = 0 ]; then
      printf '\n== %s: ok (%s)\n' "$job" "$(cat "$work/$job.versions")"
      grep -E '^(-- [a-z]+ (root|user): |==== |smoke: | +apt-get )' "$work/$job.log"
    else
      printf '\n== %s: FAILED (%s)\n' "$job" "$(cat "$work/$job.versions" 2>/dev/null)"
      tail -n 150 "$work/$job.log"
      failed+=("$job")
    fi
  done
  if [ ${#failed[@]} -gt 0 ]; then
    printf '\n==== fresh: FAILED: %s; in %ss ====\n' "${failed[*]}" $((SECONDS - begun))
    exit 1
  fi
  printf '\n==== fresh: %s machines, in %ss ====\n' "${#jobs[@]}" $((SECONDS - begun))
}

main; exit  # read in whole by now: an edit meanwhile changes nothing
