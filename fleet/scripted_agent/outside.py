"""What the scripted agent does outside its own screen: files, commands, commits, children, instants."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from typing import Any

_SEEN: set[str] = set()


def iso(instant: float) -> str:
    """An instant in UTC, to the second, rounded up: it never names a moment that is too early."""
    whole = int(instant) + (instant > int(instant))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(whole))


def with_reset(text: str, opens: float) -> str:
    """A limit banner with its reset time filled in."""
    if opens == float("inf"):
        return re.sub(r"\s*\S*\s*resets \{reset\w*\}", "", text)
    clock = time.strftime("%-I:%M%p (UTC)", time.gmtime(opens + 59)).lower().replace("(utc)", "(UTC)")
    slots = {
        "{reset}": iso(opens),
        "{reset_clock}": clock,
        "{reset_in}": f"in {max(int(opens - time.time() + 0.999), 1)}s",
        "{reset_epoch}": str(int(opens)),
    }
    for slot, value in slots.items():
        text = text.replace(slot, value)
    return text


def put(path: str, text: str, *, append: bool) -> None:
    """Write a file whole (through a rename, so that no reader sees half of it), or add to it."""
    path = os.path.expanduser(path)
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    text += "" if text.endswith("\n") or not text else "\n"
    if append:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
        return
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(f"{path}.new", path)


def file_has(path: str, pattern: re.Pattern[str]) -> bool:
    """Whether a file is there and has a match."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8", errors="replace") as file:
            return pattern.search(file.read(1 << 20)) is not None
    except OSError:
        return False


def first_time(record: str, name: str) -> bool:
    """Whether nothing of that name was done before; now it is. Remembered with the records, if any."""
    safe = re.sub(r"[^\w.-]", "_", name)
    if not record:
        first = safe not in _SEEN
        _SEEN.add(safe)
        return first
    try:
        os.close(os.open(f"{record}/once-{safe}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return first_time("", name)
    return True


def set_name(name: str) -> None:
    """The name under which the system lists this process."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name[:15])


class Job:
    """A command in the background, its output kept."""

    def __init__(self, argv: list[str]) -> None:
        import subprocess
        import tempfile

        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in stop
        self.output = ""
        try:
            self._process: Any = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=self._file, stderr=subprocess.STDOUT
            )
        except OSError as error:
            self._process = None
            self.output = str(error)
        self.status = 127

    def finished(self) -> bool:
        """Whether it is over."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        """Collect the result; a command that still runs is ended."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
        self.status = self._process.wait()
        self._file.seek(0)
        self.output = self._file.read(1 << 20).decode("utf-8", "replace")
        self._file.close()


_GIT = ["git", "-c", "commit.gpgsign=false"]


def commit_commands(subject: str, step: dict[str, Any]) -> list[list[str]]:
    """The git commands of one commit. An identity is given only where the user has none."""
    who = os.environ.get("AO_AGENT", "agent")
    for kind in ("AUTHOR", "COMMITTER"):
        os.environ.setdefault(f"GIT_{kind}_NAME", who)
        os.environ.setdefault(f"GIT_{kind}_EMAIL", f"{who}@scripted.invalid")
    add = [*_GIT, "add", "-A", "--", *[str(f) for f in step.get("files", ["."])]]
    commit = [*_GIT, "commit", "-q", *(["--allow-empty"] if step.get("empty") else []), "-m", subject]
    commands = [add, commit]
    if step.get("pull"):
        commands.append([*_GIT, "pull", "-q", "--rebase"])
    if step.get("push"):
        commands.append([*_GIT, "push", "-q"])
    return commands


class CommitWatch:
    """Looks for a new commit on any branch here whose subject matches."""

    def __init__(self, pattern: re.Pattern[str], repo: str, *, old: bool) -> None:
        self._pattern = pattern
        self._repo = repo
        self.subject = ""
        self._known = set() if old else {line.partition(" ")[0] for line in self._log()}

    def _log(self) -> list[str]:
        job = Job(["git", "-C", self._repo, "log", "--all", "-n", "200", "--format=%H %s"])
        while not job.finished():
            time.sleep(0.005)
        job.stop()
        return job.output.splitlines() if job.status == 0 else []

    def seen(self) -> bool:
        """Whether it is there now."""
        for line in self._log():
            commit, _, subject = line.partition(" ")
            if commit not in self._known and self._pattern.search(subject):
                self.subject = subject
                return True
        return False


# --- children ----------------------------------------------------------------------------------------------
# Eight kinds, to see which are still there after an agent was stopped. Each differs in how it may escape:
# another group, another session, SIGHUP ignored, a new parent. All of them keep the environment, so all of
# them still carry the id of their run.

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
