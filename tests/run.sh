#!/usr/bin/env bash
# Everything that must hold before a change is shared, on a fresh machine too.
#
#   tests/run.sh                 lint, types, unit, a quick simulation, contract and tmux tests
#   tests/run.sh lint | unit | contract | tmux | live | long [pytest options]
#   tests/run.sh sim [--seeds N --hours H --first S]
#   tests/run.sh chaos [--minutes N --seed S]
#   tests/run.sh all             the default, then live and the long simulation
#
# Builds its own .venv from requirements-dev.lock (reused while lock and Python stay the same) and installs
# tmux and git where it may; otherwise it prints the one command to run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
unset TMUX TMUX_PANE
unset PYTHONPATH PYTHONDONTWRITEBYTECODE
started=$SECONDS
failed=()
counted=

die() { printf 'error: %s\n' "$*" >&2; exit 2; }

find_python() {
  local name
  for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  die "no Python 3.11 or newer on PATH: install one, or set PYTHON to it"
}

set_up() {
  local base
  base=$(find_python) || exit 2
  if ! command -v tmux >/dev/null || ! command -v git >/dev/null; then
    "$base" agents.py doctor --install-tmux >&2 || true
    command -v tmux >/dev/null && command -v git >/dev/null || die "tmux and git are needed (see above)"
  fi
  "$base" -c 'import sys; from fleet.cli.doctor import tmux_itself
found = tmux_itself()
sys.exit(f"error: {found.detail}: {found.fix}" if found.level == "fail" else 0)' || exit 2
  if ! py=$("$base" -m fleet.bootstrap dev); then
    # No network and no wheels: a Python that already has the tools will do.
    "$base" -c 'import pytest, xdist, hypothesis, mypy, ruff, time_machine' 2>/dev/null || exit 2
    echo "going on with the tools of $base" >&2
    py=$base
  fi
}

step() {  # step NAME COMMAND...: run it, say how it went, remember a failure
  local name=$1 begun=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    printf '== %s: ok, %ds\n' "$name" $((SECONDS - begun))
  else
    printf '== %s: FAILED, %ds\n' "$name" $((SECONDS - begun))
    failed+=("$name")
  fi
}

has_tests() { compgen -G "tests/$1/test_*.py" >/dev/null; }

# Most of what tests with a tmux do is wait, so there are always more workers than cores of a small machine;
# a real CLI does not only wait.
workers() {  # workers LEAST
  local n
  n=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
  echo $((n < $1 ? $1 : n > 8 ? 8 : n))
}

suite() {  # suite DIR... [-- pytest options]: one pytest over those of the directories that hold tests
  local where=() least=5 code
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    has_tests "$1" && where+=("tests/$1")
    shift
  done
  [ "${1:-}" = -- ] && shift
  [ ${#where[@]} -gt 0 ] || { echo "no tests there yet"; return 0; }
  [ "${where[0]}" = tests/live ] && least=3
  "$py" -m pytest -n "$(workers $least)" --dist=worksteal --continue-on-collection-errors "${where[@]}" "$@" |
    tee "$run_dir/pytest.out"
  code=${PIPESTATUS[0]}
  if [ "$code" = 1 ] && [ -n "${CI:-}" ]; then
    # Real panes on a busy machine: what fails twice has failed; what fails once is named, and worth a look.
    printf '\n== again, one at a time: what failed\n'
    if "$py" -m pytest -n 0 --last-failed --last-failed-no-failures none "${where[@]}" "$@"; then
      grep -E '^(FAILED|ERROR) ' "$run_dir/pytest.out" | sed 's/^/passed only at the second try: /'
      code=0
    fi
  fi
  counted=$(sed -nE 's/^=* ?(.*[0-9] (passed|failed|errors?|skipped).*) in [0-9.]+s.*$/\1/p' "$run_dir/pytest.out" | tail -1)
  return "$code"
}

lint() { "$py" -m ruff check . && "$py" -m mypy; }

sim() {
  if [ $# -gt 0 ] && [ -e tests/sim/__main__.py ]; then
    "$py" -m tests.sim "$@"
  else
    suite sim -- "$@"
  fi
}

chaos() {
  if [ $# -gt 0 ]; then
    "$py" -m tests.chaos "$@"
  else
    suite chaos
  fi
}

# Every tmux server of this run lives in a socket directory of its own, and every process inherits the name of
# the run: what is left at the end is ours, whatever else goes on on this machine.
run_dir=$(mktemp -d "${TMPDIR:-/tmp}/aotest-XXXXXX") || exit 2
export TMUX_TMPDIR=$run_dir AOTEST_RUN=${run_dir##*/}
tidy() {
  local socket
  for socket in "$run_dir"/tmux-*/*; do
    [ -S "$socket" ] && tmux -S "$socket" kill-server 2>/dev/null
  done
  rm -rf "$run_dir"
}
trap tidy EXIT
trap 'exit 130' INT TERM

leaks() {  # the last ones may still be on their way out
  local found tries
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    found=$(left_over)
    [ -z "$found" ] && return 0
    sleep 0.5
  done
  printf 'left behind by the tests:\n%s\n' "$found" >&2
  return 1
}

left_over() {
  local socket
  for socket in "$run_dir"/tmux-*/*; do
    [ -S "$socket" ] && tmux -S "$socket" list-sessions -F '  session #{session_name} on #{socket_path}' 2>/dev/null
  done
  [ -d /proc/self ] && "$py" - <<'PYTHON'
import os
mark = f"AOTEST_RUN={os.environ['AOTEST_RUN']}".encode()
parent, names = {}, {}
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/stat") as stat:
            state, above = stat.read().rpartition(")")[2].split()[:2]
            if mark in environ.read().split(b"\0") and state != "Z":
                with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                    names[int(pid)] = cmdline.read().replace(b"\0", b" ").decode(errors="replace")
                parent[int(pid)] = int(above)
    except OSError:
        continue
above = os.getpid()
while above in parent:  # ourselves
    above, _ = parent.pop(above), names.pop(above)
for pid, name in names.items():
    print(f"  process {pid}: {name}")
PYTHON
}

everything() {
  step lint lint
  # The simulated days first: they only compute, while the others mostly wait.
  step tests suite sim unit contract tmux -- -m "not long"
}

set_up
what=${1:-default}
[ $# -gt 0 ] && shift
case $what in
  default) everything ;;
  all)
    everything
    step live suite live
    step long suite sim unit tmux -- -m long
    [ -e tests/sim/__main__.py ] && step "long sim" sim --seeds 200 --hours 24
    ;;
  lint) step lint lint ;;
  unit | contract | tmux | live | examples) step "$what" suite "$what" -- "$@" ;;
  long) step long suite sim unit tmux -- -m long "$@" ;;
  sim) step sim sim "$@" ;;
  chaos) step chaos chaos "$@" ;;
  *) die "unknown part $what: lint, unit, sim, contract, tmux, live, long, chaos, examples or all" ;;
esac
step leaks leaks

took="in $((SECONDS - started))s"
if [ ${#failed[@]} -gt 0 ]; then
  printf '\n==== FAILED: %s; %s %s ====\n' "${failed[*]}" "${counted:-no tests}" "$took"
  exit 1
fi
printf '\n==== %s %s ====\n' "${counted:-all passed}" "$took"
