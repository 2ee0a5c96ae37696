"""Reading the process table: from procfs in two system calls per process, from psutil where there is none."""

from __future__ import annotations

import os
from contextlib import suppress
from types import ModuleType
from typing import NamedTuple

from fleet.host.clock import RealClock, since_boot
from fleet.ports import Unavailable

RUN_VARIABLE = "AO_RUN_ID"

_ROOT = "/proc"
HAS_PROCFS = os.path.exists(f"{_ROOT}/self/stat")
_ENVIRON_CAP = 1 << 20
_TICK = os.sysconf("SC_CLK_TCK")


class ProcRow(NamedTuple):  # a tuple, because a large fleet makes thousands of them a second
    """One process as one reading of the table shows it."""

    pid: int
    start: int  # clock ticks after boot
    ppid: int
    sid: int
    name: str
    state: str
    cpu: float

    @property
    def zombie(self) -> bool:
        return self.state in "ZX"


def ticks_ago(seconds: float) -> float:
    """That long ago, in the unit and from the origin of `ProcRow.start`."""
    now = since_boot() if HAS_PROCFS else RealClock().wall()
    return (now - seconds) * _TICK


def age(row: ProcRow) -> float:
    """Seconds since it started, with those that the machine slept."""
    return (ticks_ago(0.0) - row.start) / _TICK


def table() -> dict[int, ProcRow]:
    """Every process of the machine that can be seen, by pid."""
    try:
        pids = [int(n) for n in os.listdir(_ROOT) if n.isdigit()] if HAS_PROCFS else _psutil().pids()
    except OSError as error:
        raise Unavailable(f"the process table could not be read: {error.strerror}; trying again") from None
    return {found.pid: found for found in map(row, pids) if found is not None}


def last_born() -> int:
    """The newest process id of the machine; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError), open(f"{_ROOT}/loadavg", encoding="ascii") as file:
        return int(file.read().split()[4])
    return 0


def row(pid: int) -> ProcRow | None:
    """One process, or nothing when it is gone."""
    if not HAS_PROCFS:
        return _psutil_row(pid)
    try:
        fd = os.open(f"{_ROOT}/{pid}/stat", os.O_RDONLY)
        try:
            return parse(os.read(fd, 4096))
        finally:
            os.close(fd)
    except OSError:
        return None


def start_of(pid: int) -> int:
    """When a process started, in clock ticks after boot; 0 when it has ended, and where there is no /proc.

    Verbs without a library compare it, so psutil is not asked. One that has ended and was not collected yet
    still has its number: tmux may take a while to collect.
    """
    found = row(pid) if HAS_PROCFS else None
    return 0 if found is None or found.zombie else found.start


def parse(text: bytes) -> ProcRow | None:
    """`pid (name) state ppid …`: the name may hold spaces and parentheses, so cut at the last one."""
    head, _, tail = text.rpartition(b")")
    pid, _, name = head.partition(b" (")
    cells = tail.split(None, 20)  # up to starttime, field 22 of stat(5)
    if not pid.isdigit() or len(cells) < 20:  # noqa: PLR2004
        return None
    return ProcRow(
        int(pid),
        int(cells[19]),
        int(cells[1]),
        int(cells[3]),
        name.decode("utf-8", "replace"),
        cells[0].decode("ascii", "replace"),
        (int(cells[11]) + int(cells[12])) / _TICK,
    )


def own(pid: int) -> bool:
    """Does it run as us? Others' processes are none of our business, root or not."""
    if not HAS_PROCFS:
        return True  # psutil shows only what may be looked at
    try:
        return os.stat(f"{_ROOT}/{pid}").st_uid == os.geteuid()
    except OSError:
        return False


def exe(pid: int) -> str:
    """Base name of the binary that really runs, "" where we may not look."""
    with suppress(OSError):
        return os.path.basename(os.readlink(f"{_ROOT}/{pid}/exe")).removesuffix(" (deleted)")
    return ""


def run_of(pid: int) -> str:
    """The run id in a process's environment: "" for none, for other users' and for the vanished."""
    if not own(pid):
        return ""
    if not HAS_PROCFS:
        return _psutil_run(pid)
    try:
        with open(f"{_ROOT}/{pid}/environ", "rb") as file:
            environ = b"\0" + file.read(_ENVIRON_CAP)
    except OSError:
        return ""
    _, _, rest = environ.partition(b"\0" + RUN_VARIABLE.encode() + b"=")
    return rest.partition(b"\0")[0].decode("utf-8", "replace")


def _psutil() -> ModuleType:
    try:
        import psutil
    except ImportError:
        raise Unavailable("there is no /proc here and psutil is not installed: install psutil") from None
    return psutil


def _psutil_row(pid: int) -> ProcRow | None:
    psutil = _psutil()
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return ProcRow(
                pid=pid,
                start=int(process.create_time() * _TICK),
                ppid=process.ppid(),
                sid=os.getsid(pid),
                name=process.name(),
                state="Z" if process.status() == psutil.STATUS_ZOMBIE else "R",
                cpu=times.user + times.system,
            )
    return None


def _psutil_run(pid: int) -> str:
    psutil = _psutil()
    with suppress(psutil.Error, OSError):
        return str(psutil.Process(pid).environ().get(RUN_VARIABLE, ""))
    return ""
