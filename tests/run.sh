#!/usr/bin/env bash
# Everything that must hold before a change is shared, on a fresh machine too.
#
#   tests/run.sh                 lint, types, unit, a quick simulation, contract and tmux tests
#   tests/run.sh lint | unit | contract | tmux | live | long [pytest options]
#   tests/run.sh sim [--seeds N --hours H --first S]
#   tests/run.sh chaos [--minutes N --seed S]
#   tests/run.sh fresh [--share] [SUITE...]  README's two commands on minimal systems (tests/fresh.sh)
#   tests/run.sh all             the default, then live and the long simulation
#
# Needs Python, bash, and what is installed here when it is missing: tmux, git, Python's venv module. Where it may not
# install them it prints the one line that does. Builds its own .venv from requirements-dev.lock (reused while lock and
# Python stay the same). Starts from an empty environment: the names below are all that a test can see of the caller's.
set -uo pipefail

if [ "${AOTEST_CLEAN:-}" != $$ ]; then
  keep=("AOTEST_CLEAN=$$")  # exec keeps the process id, so a run inside a run cleans up for itself
  while IFS= read -r name; do
    case $name in
      PATH | HOME | USER | LOGNAME | SHELL | TERM | LANG | LANGUAGE | LC_* | TMPDIR | CI | PYTHON) ;;
      AO_* | AOTEST_* | CHAOS_* | PIP_* | UV_* | NPM_CONFIG_* | npm_config_* | PYENV_ROOT | PYENV_VERSION) ;;
      http_proxy | https_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | ALL_PROXY) ;;
      SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | NODE_EXTRA_CA_CERTS | NIX_SSL_CERT_FILE) ;;
      *) continue ;;
    esac
    [ "$name" = AOTEST_CLEAN ] || keep+=("$name=${!name}")
  done < <(compgen -e)
  exec env -i "${keep[@]}" "$BASH" "${BASH_SOURCE[0]}" "$@"
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P) || exit 2
[ "${1:-}" != fresh ] || { shift; exec "$BASH" "$here/tests/fresh.sh" "$@"; }
base=$(sh "$here/fleet/find-python.sh") || exit 2
case ${AO_WHEELS:-/} in /*) ;; *) export AO_WHEELS=$PWD/$AO_WHEELS ;; esac  # relative to the caller's directory
case ${AO_VENV:-/} in /*) ;; *) export AO_VENV=$PWD/$AO_VENV ;; esac
cd "$here" || exit 2
export TERM=${TERM:-dumb}
started=$SECONDS
failed=()
counted=
linter=  # the process that lints while tests run

die() { printf 'error: %s\n' "$*" >&2; exit 2; }

set_up() {
  local own= needs=(tmux git)
  # No network and no wheels: a Python that already has the tools will do.
  "$base" -c 'import pytest, xdist, hypothesis, mypy, ruff, time_machine' 2>/dev/null && own=$base
  [ -n "$own" ] || [ -e "${AO_VENV:-.venv}/fleet-stamp" ] || needs+=(venv)
  "$base" -m fleet.host.packages "${needs[@]}" || exit 2
  "$base" -c 'import sys; from fleet.verbs.doctor import tmux_itself
found = tmux_itself()
sys.exit(f"error: {found.detail}: {found.fix}" if found.level == "fail" else 0)' || exit 2
  if ! py=$("$base" -m fleet.bootstrap dev); then
    [ -n "$own" ] || exit 2
    echo "going on with the tools of $own" >&2
    py=$own
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
  # In a new checkout every worker would compile all tests at the same time: one does it first, for all.
  compgen -G "${where[0]}/__pycache__/test_*pytest*.pyc" >/dev/null ||
    "$py" -m pytest --collect-only -qq "${where[@]}" >/dev/null 2>&1
  case ${where[0]} in
    tests/live) least=3 ;;
    tests/chaos) least=2 ;;  # a storm is no rest for a machine
  esac
  "$py" -m pytest -n "$(workers $least)" --dist=worksteal --continue-on-collection-errors "${where[@]}" "$@" |
    tee "$run_dir/pytest.out"
  code=${PIPESTATUS[0]}
  if [ "$code" = 1 ] && [ -n "${CI:-}" ]; then
    # What passes now, alone, is a race, in the test or in the product: it is named, and fails the run too.
    printf '\n== again, one at a time: what failed\n'
    "$py" -m pytest -n 0 --last-failed --last-failed-no-failures none "${where[@]}" "$@" | tee "$run_dir/again.out"
    failed_in "$run_dir/pytest.out" | grep -vxFf <(failed_in "$run_dir/again.out") |
      sed 's/^/passed only at the second try, so it is a race: /'
  fi
  counted=$(sed -nE 's/^=* ?(.*[0-9] (passed|failed|errors?|skipped).*) in [0-9.]+s.*$/\1/p' "$run_dir/pytest.out" | tail -1)
  return "$code"
}

failed_in() { sed -nE 's/ - .*//; s/^(FAILED|ERROR) +//p' "$1"; }

lint() { "$py" -m ruff check . && "$py" -m mypy; }

linted() {  # what the linter said, once it is through
  local code=0
  wait "$linter" || code=$?
  linter=
  cat "$run_dir/lint.out"
  return "$code"
}

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
export TMUX_TMPDIR=$run_dir AOTEST_RUN=${run_dir##*/} AOTEST_RUNNING=$run_dir/running
mkdir "$AOTEST_RUNNING"
if [ ! -w . ]; then  # somebody else's checkout: what the tools keep between runs is kept for this one
  export RUFF_CACHE_DIR=$run_dir/ruff MYPY_CACHE_DIR=$run_dir/mypy HYPOTHESIS_STORAGE_DIRECTORY=$run_dir/hypothesis
  export PYTEST_ADDOPTS="-o cache_dir=$run_dir/pytest"
fi
tidy() {
  local socket
  [ -z "$linter" ] || kill "$linter" 2>/dev/null
  for socket in "$run_dir"/tmux-*/*; do
    [ -S "$socket" ] && tmux -S "$socket" kill-server 2>/dev/null
  done
  rm -rf "$run_dir"
}
trap tidy EXIT
trap 'exit 130' INT
trap 'unfinished; exit 143' TERM

# Who ends a run from outside, because it hangs, ends its tests too; bash is here once they are gone.
unfinished() {
  local file
  for file in "$AOTEST_RUNNING"/*; do
    [ -s "$file" ] && printf 'it was still running: %s\n' "$(cat "$file")"
  done
}

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
  lint >"$run_dir/lint.out" 2>&1 &  # one process; the first tests share the machine with it
  linter=$!
  # The simulated days first: they only compute, while the others mostly wait.
  step tests suite sim unit contract tmux -- -m "not long"
  step lint linted
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
    step goldens sim --goldens --long
    step "long sim" sim --seeds 200 --hours 24
    step "long sim with loops" sim --seeds 200 --hours 24 --loops
    ;;
  lint) step lint lint ;;
  unit | contract | tmux | live | examples) step "$what" suite "$what" -- "$@" ;;
  long) step long suite sim unit tmux -- -m long "$@" ;;
  sim) step sim sim "$@" ;;
  chaos) step chaos chaos "$@" ;;
  *) die "unknown part $what: lint, unit, sim, contract, tmux, live, long, chaos, examples, fresh or all" ;;
esac
step leaks leaks

took="in $((SECONDS - started))s"
if [ ${#failed[@]} -gt 0 ]; then
  printf '\n==== FAILED: %s; %s %s ====\n' "${failed[*]}" "${counted:-no tests}" "$took"
  exit 1
fi
printf '\n==== %s %s ====\n' "${counted:-all passed}" "$took"
