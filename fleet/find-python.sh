#!/bin/sh
# Prints the Python that runs this project on this machine, or says that there is none (exit 2).
# Asked by smoke.sh and tests/run.sh, and by agents.py when the Python it was started with is too old.
#
# PYTHON, if set, is the one and must do. Else python3, which is what `./agents.py` runs under, if it is one of
# those that the tests run on; then the newest such python3.N on PATH; then any newer one, the nearest first.
# Each is run before it is named: a link may lead nowhere, and a version manager may have no such version.
oldest=11
newest=14

minor() {  # minor PROGRAM: the N of its 3.N, or nothing
  "$1" -c 'import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else 0)' 2>/dev/null </dev/null
}

found() {  # found PROGRAM: print where it is, and that is all
  where=$(command -v "$1")
  case $where in
    /*) printf '%s\n' "$where" ;;
    *) printf '%s\n' "$PWD/$where" ;;
  esac
  exit 0
}

try() {  # try PROGRAM LEAST MOST
  n=$(minor "$1")
  [ -n "$n" ] && [ "$n" -ge "$2" ] && [ "$n" -le "$3" ] && found "$1"
}

if [ -n "${PYTHON:-}" ]; then
  try "$PYTHON" $oldest 999
  printf 'error: PYTHON is %s, and that is no Python 3.%s or newer\n' "$PYTHON" $oldest >&2
  exit 2
fi

try python3 $oldest $newest
n=$newest
while [ "$n" -ge $oldest ]; do
  at=$n
  try "python3.$at" $oldest $newest
  n=$((at - 1))
done
try python $oldest $newest

newer() {  # every N above the newest of a python3.N on PATH
  IFS=:
  set -f
  for folder in $PATH; do
    set +f
    for file in "${folder:-.}"/python3.*; do
      n=${file##*/python3.}
      case $n in
        '' | *[!0-9]*) ;;
        *) [ "$n" -gt $newest ] && echo "$n" ;;
      esac
    done
  done | sort -n -u
}
try python3 $oldest 999
for at in $(newer); do
  try "python3.$at" $oldest 999
done
try python $oldest 999

had=$(python3 -c 'import sys; print("python3 is %d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null)
printf 'error: no Python 3.%s or newer on PATH%s: install one, or set PYTHON to it\n' $oldest "${had:+ ($had)}" >&2
exit 2
