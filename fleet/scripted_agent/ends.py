"""How the program ends, or is interrupted: raised by actions, carried out where nothing is left to do."""

from __future__ import annotations

import contextlib
import os
import signal

from fleet.scripted_agent.terminal import Terminal


class Interrupted(Exception):
    """Escape or Ctrl-C was pressed while it worked."""


class Ended(Exception):
    """The program is over: by a code, by a signal, or by becoming another program."""

    def __init__(self, code: int = 0, signum: int = 0, argv: list[str] | None = None) -> None:
        super().__init__(code, signum, argv)
        self.code = code
        self.signum = signum
        self.argv = argv

    def finish(self, terminal: Terminal) -> int:
        """Do it; the code to exit with, where we get that far."""
        if self.signum:  # a crash cleans nothing up
            with contextlib.suppress(OSError):  # not even needed for KILL, and not allowed
                signal.signal(self.signum, signal.SIG_DFL)
            os.kill(os.getpid(), self.signum)
            signal.pause()
        terminal.close()
        if self.argv:
            os.execvp(self.argv[0], self.argv)
        return self.code


def set_name(name: str) -> None:
    """The name under which the system lists this process."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name[:15])
