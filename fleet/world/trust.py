"""Look who else could change what we read or run: the facts behind core/trust.py."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator

from fleet.core.trust import Distrust, Step, distrust

_OVERFLOW = "/proc/sys/kernel/overflowuid"
_UID_MAP = "/proc/self/uid_map"
_WHOLE_MAP = ["0", "0", "4294967295"]


def untrusted(path: str) -> Distrust | None:
    """Who else reaches this path, over its name or over what its links lead to; None for no one.

    What does not exist yet is judged by the directories above it.
    """
    uid, unmapped = os.geteuid(), _unmapped()
    lexical = os.path.abspath(path)
    for way in dict.fromkeys((os.path.realpath(lexical), lexical)):
        if found := distrust(_steps(way), uid, unmapped):
            return found
    return None


def _steps(path: str) -> Iterator[Step]:
    """Every directory from the root down to the path, and the path."""
    parts = [p for p in path.split("/") if p]
    for number in range(len(parts) + 1):
        place = "/" + "/".join(parts[:number])
        try:
            info = os.lstat(place)
        except OSError:
            return  # made by us, if the directories so far are trusted
        if os.path.islink(place):
            continue  # a link has no mode; its directory was looked at, its target has a way of its own
        alone = bool(info.st_mode & stat.S_IWGRP) and _group_of_one(info.st_gid, info.st_uid)
        yield Step(place, info.st_uid, info.st_mode, above=number < len(parts), group_of_one=alone)


def _group_of_one(gid: int, uid: int) -> bool:
    """Whether this is the private group of that user: of the same name, with no other member."""
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _unmapped() -> int | None:
    """The owner that stands for everyone outside of our user namespace, where we are in one."""
    try:
        with open(_UID_MAP, encoding="ascii") as file:
            if file.read().split() == _WHOLE_MAP:
                return None
        with open(_OVERFLOW, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
