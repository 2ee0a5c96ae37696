# Sourced by the smokes, which set cli: one real CLI through agents.py, in a sandbox, and nothing left behind.

say() { printf '%s: %s\n' "smoke_$cli" "$*"; }
skip() { say "SKIP: $*"; exit 0; }

engine=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
prefix="aotest-$$-$RANDOM-"
box=
unset TMUX TMUX_PANE

agents() { (cd "$box" && "$python" "$engine/agents.py" "$@"); }

clean_up() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$box" ]; then
    agents down >/dev/null 2>&1 || true
    tmux -L "ao-${prefix%-}" kill-server 2>/dev/null || true
    rm -rf "$box"
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

smoke() {  # smoke BACKEND_TABLE
  command -v tmux >/dev/null || skip "tmux is not installed"
  box=$(mktemp -d "${TMPDIR:-/tmp}/aotest-XXXXXX")
  mkdir -p "$box/work"
  cat >"$box/agents.toml" <<TOML
[defaults]
session_prefix = "$prefix"
log_dir = "log"
dir = "work"
[watchdog]
signal_interval = 2
heavy_interval = 10
[backend.$cli]
$1
[[agent]]
name = "smoke"
kind = "persistent"
backend = "$cli"
watch = "heal"
model = "${AOTEST_MODEL:-}"
prompt = "Reply with the single word ready. Do nothing else."
TOML
  agents validate || { say "FAIL: the config is not valid"; exit 1; }
  # A new folder may have to be trusted by hand; then `up` says so, and the agent runs all the same.
  agents up || say "up is not content (see above); looking whether the agent runs"
  agents status
  agents status | grep -q 'smoke .*RUNNING' || { say "FAIL: it is not RUNNING"; exit 1; }
  agents attach --print smoke || { say "FAIL: there is nothing to attach to"; exit 1; }
  agents down || { say "FAIL: down"; exit 1; }
  if tmux -L "ao-${prefix%-}" list-sessions 2>/dev/null | grep -q "^$prefix"; then
    say "FAIL: a session was left behind"
    exit 1
  fi
  say "PASS"
}
