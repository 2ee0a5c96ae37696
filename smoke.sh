#!/usr/bin/env bash
# The example fleet runs its whole job on a fresh machine and without any key: a claim is reviewed, a gate fails and is
# mended, a phase ends, the sequence completes; then it is gone. One line a step, with the seconds since the start.
# Runs in a sandbox with a prefix, a tmux server and a directory of its own; cleans up however it ends.
set -euo pipefail
engine=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
unset TMUX TMUX_PANE

python=$(sh "$engine/fleet/find-python.sh")
(cd "$engine" && "$python" -m fleet.host.packages tmux git)

sandbox=$(mktemp -d "${TMPDIR:-/tmp}/smoke-XXXXXX")
export TMUX_TMPDIR=$sandbox XDG_STATE_HOME=$sandbox
config=$sandbox/agents.toml
agents() { "$python" "$engine/agents.py" "$@" --config "$config"; }

clean_up() {
  local code=$?
  trap - EXIT INT TERM
  agents down >/dev/null 2>&1 || true
  local socket
  for socket in "$sandbox"/tmux-*/*; do
    [ -S "$socket" ] && tmux -S "$socket" kill-server 2>/dev/null || true
  done
  if [ "$code" -ne 0 ] && [ -n "${SMOKE_KEEP:-}" ]; then
    echo "kept for a look: $sandbox" >&2
  else
    rm -rf "$sandbox"
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The example as it is, except for its prefix: two smokes at once must not meet.
prefix=smoke-$$-
"$python" - "$engine" "$sandbox" "$prefix" <<'PYTHON'
import os, re, shutil, sys
engine, sandbox, prefix = sys.argv[1:]
with open(os.path.join(engine, "agents.example.toml"), encoding="utf-8") as file:
    text = file.read()
text, found = re.subn(r'(?m)^(session_prefix\s*=\s*)"[^"]*"', rf'\1"{prefix}"', text)
assert found == 1, "agents.example.toml has no session_prefix line"
with open(os.path.join(sandbox, "agents.toml"), "w", encoding="utf-8") as file:
    file.write(text)
for name in ("prompts", "examples"):
    if os.path.isdir(os.path.join(engine, name)):
        shutil.copytree(os.path.join(engine, name), os.path.join(sandbox, name))
PYTHON

begun=$(date +%s)
step() { printf '%3ds  %s\n' "$(($(date +%s) - begun))" "$*"; }
fail() {
  echo "error: $1" >&2
  agents events -n 30 >&2 || true
  agents status >&2 || true
  exit 1
}

agents validate >/dev/null || fail "the example is not valid"
step "the example is valid"
agents up >/dev/null || fail "the fleet did not come up"
step "a builder, an adversary and their watchdog are up"

# Each step as `agents.py events` tells it: the first event of that type after the step before.
patience=${SMOKE_PATIENCE:-120} # on a busy machine; a quiet one needs half a minute for everything
"$python" - "$python" "$engine/agents.py" "$config" "$begun" "$patience" <<'PYTHON' || fail "the story stopped there"
import json, subprocess, sys, threading, time
python, launcher, config, begun, patience = sys.argv[1:]
STEPS = (
    ("handoff.reviewed", "a claim is reviewed"),
    ("phase.advanced", "the first phase ends"),
    ("handoff.claimed", "a claim is handed to the adversary"),
    ("gate.failed", "a gate fails"),
    ("gate.passed", "the builder has mended it, the gate passes"),
    ("sequence.completed", "the last phase ends, the sequence is complete"),
)
words = [python, launcher, "events", "--follow", "--json", "--since", "1h", "--config", config]
with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as events:
    clock = threading.Timer(float(patience), events.kill)
    clock.start()
    told = 0
    for line in events.stdout:
        try:
            kind = json.loads(line)["type"]
        except ValueError:
            continue
        if kind == STEPS[told][0]:
            print(f"{time.time() - int(begun):3.0f}s  {STEPS[told][1]}", flush=True)
            told += 1
        if told == len(STEPS):
            break
    clock.cancel()
    events.kill()
if told < len(STEPS):
    sys.exit(f"error: {STEPS[told][1]}: this did not come within {patience} s")
PYTHON

agents wait --complete --timeout 10 >/dev/null || fail "the sequence is not complete"
agents down >/dev/null || fail "down did not end everything"
step "the fleet is down"
left=$(for socket in "$sandbox"/tmux-*/*; do
  [ -S "$socket" ] && tmux -S "$socket" list-sessions -F '#{session_name}' 2>/dev/null || true
done)
[ -z "$left" ] || fail "sessions left behind: $left"
step "no session is left"
if [ -d /proc/self ]; then
  left=$("$python" - "$sandbox" $$ <<'PYTHON'
import os, sys, time
mark, ours = os.fsencode(sys.argv[1]), {int(sys.argv[2]), os.getpid(), os.getppid()}

def left():
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:  # whatever we started has the sandbox in its environment or in its arguments
            said = b"".join(open(f"/proc/{pid}/{name}", "rb").read() for name in ("environ", "cmdline"))
        except OSError:
            continue  # it is gone, or another user's
        if mark in said and pid not in ours:
            yield pid

deadline = time.monotonic() + 10  # the last ones may still be on their way out
while (found := list(left())) and time.monotonic() < deadline:
    time.sleep(0.1)
print(*found)
PYTHON
  )
  [ -z "$left" ] || fail "processes left behind: $left"
  step "no process is left"
else
  step "not checked: whether a process is left (there is no /proc here)"
fi
echo "smoke: ok"
