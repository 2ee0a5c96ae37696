"""Children of eight kinds, to see who is still there after an agent was stopped.

Each differs in how it may escape: another group, another session, a deaf ear for the hang-up, a new parent.
All of them keep the environment, so all of them still carry the id of their run.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

LIFE_S = "100000"
_SLEEP = ["sleep", LIFE_S]
_DEAF = ["sh", "-c", f"trap : HUP; while :; do sleep {LIFE_S} & wait; done"]


def _ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _daemonise() -> None:
    os.setsid()
    if os.fork():
        os._exit(0)


def _nothing() -> None:
    pass


KINDS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "plain": (_nothing, _SLEEP),
    "background": (_nothing, ["sh", "-c", f"sleep {LIFE_S} & wait"]),
    "nohup": (_nothing, ["nohup", *_SLEEP]),
    "setsid": (os.setsid, _SLEEP),
    "ignores_hup": (_ignore_hangup, _SLEEP),
    "own_group": (lambda: os.setpgid(0, 0), _SLEEP),
    "handles_hup": (_nothing, _DEAF),
    "daemon": (_daemonise, _SLEEP),
}


def spawn(kind: str, note: str) -> None:
    """Start one. It writes its own kind and pid as a line to the file `note`, if that is given."""
    prepare, argv = KINDS[kind]
    if os.fork():
        return
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        prepare()
        if note:
            fd = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, f"{kind} {os.getpid()}\n".encode())
        with contextlib.suppress(OSError):
            os.execvp(argv[0], argv)
    finally:
        os._exit(127)
