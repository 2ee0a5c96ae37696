"""Run a command that never ends by itself on a terminal of its own, until it has shown something; then leave.

peek.py COMMAND ...        exit 0 once it has printed, 1 when it ended badly or never said a word
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import sys
import time

PATIENCE_S = 60.0
SETTLE_S = 0.5


def main() -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    said, ended, deadline = b"", False, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], SETTLE_S if said else 1.0)
        if not ready and said:
            break
        try:
            said += os.read(terminal, 65536) if ready else b""
        except OSError:
            ended = True  # by itself
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGHUP)  # what a closed window does
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if not said.strip() or (ended and status) or b"Traceback" in said:
        sys.stderr.write(f"{sys.argv[1:]}: {status}: {said[-2000:].decode(errors='replace')}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
