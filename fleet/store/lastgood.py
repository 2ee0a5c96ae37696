"""The records of last good declarations, by the path of their file.

`log_dir` is named in the file, so a file that is broken or gone does not tell where its fleet lives. What was
last taken in is kept twice: by the file's real path in the user's own state directory, and in the fleet's
state directory, which also serves a project that was moved. Both are private.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import NamedTuple

from fleet.core.outline import Ground, project_id
from fleet.ports import Disk
from fleet.text import as_object
from fleet.times.moment import Wall

RECORD = "last-good.json"  # in the fleet's state directory
CAP = 2 << 20
STALE_S = 86400.0  # a record whose project is gone is kept that long


class Record(NamedTuple):
    """One fleet as it was last taken in."""

    ground: Ground
    text: str
    at: float


def real_ground(ground: Ground) -> Ground:
    """The same, with the links of its paths followed."""
    path, log_dir = os.path.realpath(ground.config_path), os.path.realpath(ground.log_dir)
    return ground._replace(config_path=path, log_dir=log_dir)


def folder() -> str:
    """Where this user's records lie."""
    home = os.environ.get("XDG_STATE_HOME", "")
    home = home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "agent-fleet", "fleets")


def recall(path: str, log_dir: str = "") -> Record | None:
    """The record of this file's fleet; else that of the fleet in its log_dir, if that one's file is gone."""
    real = os.path.realpath(path)
    body = _read_own(_place(real)) or _read_own(_place(os.path.abspath(path)))
    if "real" in body:  # it was a link, which is gone
        real = str(body["real"])
        body = _read_own(_place(real))
    record = _record(body)
    if record is not None and record.ground.config_path == real:
        return record
    record = recorded_in(log_dir) if log_dir else None
    if record is None:
        return None
    if record.ground.config_path != real and os.path.lexists(record.ground.config_path):
        return None  # a copy of another project, which has its own
    return record._replace(ground=record.ground._replace(log_dir=os.path.realpath(log_dir)))


def recorded_in(log_dir: str) -> Record | None:
    """The record of the fleet that lives there."""
    return _record(_read_own(os.path.join(log_dir, "state", RECORD)))


def keep(disk: Disk, named: Ground, text: str, now: Wall) -> None:
    """This declaration was taken in now. What cannot be kept in one place is kept in the other."""
    ground = real_ground(named)
    body = {**ground._asdict(), "text": text}

    def put(path: str) -> None:
        if {**_read_own(path), "at": 0} != {**body, "at": 0}:  # a record of the same text stays
            disk.write(path, json.dumps({**body, "at": round(now, 3)}).encode())

    with suppress(OSError):
        disk.make_dir(folder())
        put(_place(ground.config_path))
        if (link := os.path.abspath(named.config_path)) != ground.config_path:  # it may be removed
            disk.write(_place(link), json.dumps({"real": ground.config_path}).encode())
        _prune(now)
    state = os.path.join(named.log_dir, "state")
    with suppress(OSError):
        if os.path.isdir(state):
            put(os.path.join(state, RECORD))


def _prune(now: Wall) -> None:
    """Records of projects that are gone do not pile up."""
    with os.scandir(folder()) as entries:
        old = [e.path for e in entries if now - e.stat(follow_symlinks=False).st_mtime > STALE_S]
    for path in old:
        body = _read_own(path)
        places = [str(body[key]) for key in ("config_path", "log_dir", "real") if body.get(key)]
        if not any(os.path.lexists(place) for place in places):
            with suppress(OSError):
                os.unlink(path)


def _place(path: str) -> str:
    """Where the record of the file at this absolute path lies."""
    return os.path.join(folder(), f"{project_id(path, '')}.json")


def _read_own(path: str) -> dict[str, object]:
    """What lies there, if it is ours and whole; else nothing."""
    try:
        with open(path, "rb", opener=_careful) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return {}
            return as_object(file.read(CAP))
    except OSError:
        return {}


def _careful(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _record(body: dict[str, object]) -> Record | None:
    words = [body.get(key) for key in (*Ground._fields, "text")]
    at = body.get("at")
    if not isinstance(at, int | float) or not all(isinstance(word, str) for word in words):
        return None
    *ground, text = map(str, words)
    return Record(Ground(*ground), text, float(at))
