#!/usr/bin/env bash
# The real codex, with your own login, through agents.py: up, RUNNING, attach, down, nothing left.
# CODEX_BIN picks the binary, AOTEST_MODEL the model. Skips, politely, without binary or credentials.
set -uo pipefail
cli=codex
# shellcheck source=tests/smoke.bash
. "$(dirname "${BASH_SOURCE[0]}")/smoke.bash"

bin=${CODEX_BIN:-codex}
command -v "$bin" >/dev/null || skip "there is no codex here (set CODEX_BIN)"
if [ -z "${OPENAI_API_KEY:-}" ] && [ ! -e "${CODEX_HOME:-$HOME/.codex}/auth.json" ]; then
  skip "codex has no credentials (codex login, or set OPENAI_API_KEY)"
fi
smoke "bin = \"$(command -v "$bin")\"
flags = \"--sandbox read-only --ask-for-approval never\""
