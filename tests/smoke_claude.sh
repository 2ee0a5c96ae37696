#!/usr/bin/env bash
# The real claude, with your own login, through agents.py: up, RUNNING, attach, down, nothing left.
# CLAUDE_BIN picks the binary, AOTEST_MODEL the model. Skips, politely, without binary or credentials.
set -uo pipefail
cli=claude
# shellcheck source=tests/smoke.bash
. "$(dirname "${BASH_SOURCE[0]}")/smoke.bash"

bin=${CLAUDE_BIN:-claude}
command -v "$bin" >/dev/null || skip "there is no claude here (set CLAUDE_BIN)"
home=${CLAUDE_CONFIG_DIR:-$HOME/.claude}
if [ -z "${ANTHROPIC_API_KEY:-}${ANTHROPIC_AUTH_TOKEN:-}${CLAUDE_CODE_OAUTH_TOKEN:-}" ] && [ ! -e "$home/.credentials.json" ]; then
  skip "claude has no credentials (log in once, or set ANTHROPIC_API_KEY)"
fi
smoke "bin = \"$(command -v "$bin")\"
flags = \"--permission-mode plan\""
