"""Children that take their time: gates, fetches, clones. No caller waits for them.

A child is the leader of its own session, so that it has no terminal to ask questions on and its whole
group can be ended together: at its time limit, when its answer is not wanted any more, and whatever it
left running when it ends. Its output goes to a file, never through a pipe that must be drained. The
caller watches `pids` to wake when one ends, and asks `due` when to look at the bounds.

A supervisor that was killed leaves its recorded children behind; the next one ends them first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Generic

from fleet.host import procfs
from fleet.ports import Disk, JobEnd, Key

KILL_AFTER_S = 2.0  # between asking a group to end and forcing it
OUTPUT_CAP = 64 << 20
LEAKS = ("AGENT_", "GIT_", "AO_")  # of our own making, or pointing a child at another repository
SPARE = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL", "GIT_PROXY_COMMAND")


@dataclass(slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    started: float
    deadline: float
    log: str
    record: str
    asked: float = 0.0  # when we asked it to end
    why: str = ""


class Jobs(Generic[Key]):
    """The real ones. Belongs to one process; `close` ends them all."""

    def __init__(self, mono: Callable[[], float], disk: Disk | None = None, records: str = "") -> None:
        """`records` is a directory of ours that remembers children with a log over a crash."""
        self._mono = mono
        self._disk = disk
        self._records = records
        self._children: dict[Key, _Child] = {}
        self._cancelled: list[_Child] = []  # asked to end; no answer is wanted
        if disk and records:
            self._sweep()

    def start(
        self,
        key: Key,
        argv: Sequence[str],
        *,
        cwd: str,
        timeout: float,
        log: str = "",
        env: Mapping[str, str] = {},
    ) -> str:
        if key in self._children:
            return ""
        try:
            out = _open_log(log) if log else tempfile.TemporaryFile()  # noqa: SIM115 (it outlives this call)
        except OSError as error:
            return f"{log or 'a temporary file'}: {error.strerror or error}"
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env={**child_env(os.environ), **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            out.close()
            return f"{argv[0]} in {cwd}: {error.strerror or error}"
        now = self._mono()
        record = self._remember(process.pid) if log else ""
        self._children[key] = _Child(process, out, now, now + timeout, log, record)
        return ""

    def keys(self) -> frozenset[Key]:
        return frozenset(self._children)

    def pids(self) -> tuple[int, ...]:
        """Those at work: the end of one is worth a wake-up."""
        return tuple(c.process.pid for c in self._all())

    def due(self) -> float | None:
        """Monotonic time at which `poll` has something to do even if no child ends; None: never."""
        times = [c.asked + KILL_AFTER_S if c.asked else c.deadline for c in self._all()]
        return min(times, default=None)

    def poll(self) -> tuple[JobEnd[Key], ...]:
        for child in self._all():
            if not _has_ended(child.process.pid):
                self._press(child)
        over = [(k, c) for k, c in self._children.items() if _has_ended(c.process.pid)]
        for child in [c for c in self._cancelled if _has_ended(c.process.pid)]:
            self._cancelled.remove(child)
            self._finish(child)
        return tuple(self._ended(key, child) for key, child in over)

    def cancel(self, key: Key) -> None:
        child = self._children.pop(key, None)
        if child:
            child.asked = self._mono()
            _signal_group(child.process.pid, signal.SIGTERM)
            self._cancelled.append(child)  # the key is free at once

    def close(self) -> None:
        for child in self._all():
            _signal_group(child.process.pid, signal.SIGKILL)
            self._finish(child)
        self._children.clear()
        self._cancelled.clear()

    def _all(self) -> tuple[_Child, ...]:
        return (*self._children.values(), *self._cancelled)

    def _ended(self, key: Key, child: _Child) -> JobEnd[Key]:
        del self._children[key]
        code, output = self._finish(child)
        final = None if child.why else code
        return JobEnd(key, final, output, self._mono() - child.started, child.log, child.why)

    def _press(self, child: _Child) -> None:
        """Ask a child that is over its bounds to end, then force it."""
        now = self._mono()
        if not child.asked:
            child.why = "its time limit" if now >= child.deadline else _too_much(child.out)
            if child.why:
                child.asked = now
                _signal_group(child.process.pid, signal.SIGTERM)
        elif now >= child.asked + KILL_AFTER_S:
            _signal_group(child.process.pid, signal.SIGKILL)

    def _finish(self, child: _Child) -> tuple[int, bytes]:
        """Reap it. Its group goes first, while the pid is still ours, so that no stranger can be hit."""
        _signal_group(child.process.pid, signal.SIGKILL)
        code = child.process.wait()
        with child.out as out:
            out.seek(0)
            output = out.read(OUTPUT_CAP + 1)
        if child.record and self._disk:
            with contextlib.suppress(OSError):
                self._disk.remove(child.record)
        return code, output

    def _remember(self, pid: int) -> str:
        if not (self._disk and self._records):
            return ""
        path = f"{self._records}/{pid}"
        try:
            self._disk.make_dir(self._records)
            self._disk.write(path, _started(pid).encode())
        except OSError:
            return ""  # it only matters if we are killed now; the gate itself matters more
        return path

    def _sweep(self) -> None:
        """End what an earlier supervisor left running."""
        assert self._disk is not None
        for name in self._disk.names(self._records):
            path = f"{self._records}/{name}"
            with contextlib.suppress(OSError, ValueError):
                if name.isdigit() and self._disk.read(path).decode() == _started(int(name)) != "":
                    _signal_group(int(name), signal.SIGKILL)
            with contextlib.suppress(OSError):
                self._disk.remove(path)


def child_env(environ: Mapping[str, str]) -> dict[str, str]:
    """Our environment without what would steer a child elsewhere: git's, tmux's, one-off overrides."""
    return {
        name: value
        for name, value in environ.items()
        if name in SPARE or not (name.startswith(LEAKS) or name in {"TMUX", "TMUX_PANE"})
    }


def _open_log(path: str) -> IO[bytes]:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "r+b")


def _too_much(out: IO[bytes]) -> str:
    return "too much output" if os.fstat(out.fileno()).st_size > OUTPUT_CAP else ""


def _has_ended(pid: int) -> bool:
    """Ended, and not yet reaped: the pid stays ours until it is."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def _started(pid: int) -> str:
    """When a process began, in the kernel's own count; empty where that cannot be read."""
    found = procfs.row(pid)
    return str(found.start) if found is not None else ""
