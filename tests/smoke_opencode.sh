#!/usr/bin/env bash
# The real opencode, with your own providers, through agents.py: a server of its own on AOTEST_OC_PORT (4097; never
# 4096, which may be yours), up, RUNNING, attach, down, the port free again. OPENCODE_BIN picks the binary,
# AOTEST_MODEL the model, AOTEST_OC_CREDS a file with credentials. Skips, politely, without binary or credentials.
set -uo pipefail
cli=opencode
# shellcheck source=tests/smoke.bash
. "$(dirname "${BASH_SOURCE[0]}")/smoke.bash"

bin=${OPENCODE_BIN:-opencode}
port=${AOTEST_OC_PORT:-4097}
creds=${AOTEST_OC_CREDS:-${XDG_DATA_HOME:-$HOME/.local/share}/opencode/auth.json}
command -v "$bin" >/dev/null || skip "there is no opencode here (set OPENCODE_BIN)"
[ "$port" != 4096 ] || { say "FAIL: port 4096 may be a server of yours; choose another"; exit 2; }
if [ ! -e "$creds" ] && [ -z "${ANTHROPIC_API_KEY:-}${OPENAI_API_KEY:-}${OPENROUTER_API_KEY:-}" ]; then
  skip "opencode has no credentials (opencode auth login, or set AOTEST_OC_CREDS)"
fi
taken() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }
! taken || skip "port $port is taken (set AOTEST_OC_PORT)"
smoke "bin = \"$(command -v "$bin")\"
flags = \"--port $port\"
server = \"http://127.0.0.1:$port\""
for _ in 1 2 3 4 5 6 7 8 9 10; do taken || exit 0; sleep 0.5; done
say "FAIL: port $port is still taken"
exit 1
