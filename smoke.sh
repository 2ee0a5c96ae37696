#!/usr/bin/env bash
# The example fleet, end to end, on a fresh machine and without any key: up, at work, down, gone.
# Runs in a sandbox with a prefix, a tmux server and a directory of its own; cleans up however it ends.
set -euo pipefail
engine=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
unset TMUX TMUX_PANE

python=
for name in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
  if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(command -v "$name")
    break
  fi
done
[ -n "$python" ] || { echo "error: no Python 3.11 or newer on PATH: install one, or set PYTHON to it" >&2; exit 2; }
if ! command -v tmux >/dev/null || ! command -v git >/dev/null; then
  "$python" "$engine/agents.py" doctor --install-tmux
fi

sandbox=$(mktemp -d "${TMPDIR:-/tmp}/smoke-XXXXXX")
export TMUX_TMPDIR=$sandbox
config=$sandbox/agents.toml
agents() { "$python" "$engine/agents.py" "$@" --config "$config"; }
say() { printf '\n-- %s\n' "$*"; }

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

say validate
agents validate
say up
agents up
say status
agents status

say "waiting until every agent really ran"
"$python" - "$python" "$engine/agents.py" "$config" <<'PYTHON'
import json, os, subprocess, sys, time
python, launcher, config = sys.argv[1:]
deadline = time.monotonic() + 60
while True:
    run = subprocess.run([python, launcher, "status", "--json", "--config", config], capture_output=True, text=True)
    status = json.loads(run.stdout) if run.stdout else {"agents": [], "project": {"log_dir": ""}}
    logs = os.path.join(status["project"]["log_dir"], "logs")
    wanted = [a for a in status["agents"] if a["enabled"]]
    def ran(agent):
        path = os.path.join(logs, agent["session"] + ".log")
        return agent["state"] == "RUNNING" and os.path.exists(path) and os.path.getsize(path) > 0
    late = [a["name"] for a in wanted if not ran(a)]
    if wanted and not late:
        print(", ".join(f"{a['name']}: {a['state']} {a['detail']}" for a in wanted))
        break
    if time.monotonic() > deadline:
        sys.exit(f"error: not running after a minute: {', '.join(late) or 'no agent at all'}\n{run.stderr}")
    time.sleep(0.3)
PYTHON

say down
agents down
say "nothing is left"
left=$(for socket in "$sandbox"/tmux-*/*; do
  [ -S "$socket" ] && tmux -S "$socket" list-sessions -F '#{session_name}' 2>/dev/null || true
done)
if [ -n "$left" ]; then
  printf 'error: sessions left behind:\n%s\n' "$left" >&2
  exit 1
fi
if pgrep -f "$sandbox" >/dev/null 2>&1; then
  echo "error: processes left behind:" >&2
  pgrep -af "$sandbox" >&2
  exit 1
fi
echo "smoke: ok"
