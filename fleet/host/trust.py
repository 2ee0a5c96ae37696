"""Who can change a file: what the supervisor reads or runs must be out of every other user's reach.

A file or directory is trusted if it belongs to us or to root and no other user may write to it. That is not
enough for the file alone: a user who may write to a directory above it can put another one in its place. So
the whole way down to it is checked. A sticky directory (/tmp) lets others add names but not take ours away,
so it may stand above a file. A group may write if its owner is the only member, as where each user has
a group.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from enum import StrEnum
from shlex import quote
from typing import NamedTuple

ROOT = 0


class Way(StrEnum):
    """How another user reaches a path."""

    OWNER = "owner"  # it belongs to another user
    WRITE = "write"  # other users may write to it


class Step(NamedTuple):
    """One file or directory on the way, as it was found."""

    path: str
    owner: int
    mode: int  # with the kind of file
    above: bool  # a directory above the path, not the path itself
    group_of_one: bool = False  # the group has no member but the owner


class Distrust(NamedTuple):
    """Why a path is not trusted, and the one command that changes that."""

    path: str
    reach: Way
    owner: int
    mode: int
    fix: str

    def __str__(self) -> str:
        why = {
            Way.OWNER: f"belongs to another user (uid {self.owner}, mode {self.mode:04o})",
            Way.WRITE: f"can be written by other users (uid {self.owner}, mode {self.mode:04o})",
        }[self.reach]
        return f"{self.path} {why}"


def distrust(steps: Iterable[Step], uid: int, unmapped: int | None = None) -> Distrust | None:
    """The first step that another user reaches, from the root of the file system down.

    `unmapped` is the owner shown inside a user namespace for every user outside of it.
    """
    for step in steps:
        mode = stat.S_IMODE(step.mode)
        if step.owner not in {ROOT, uid} and not (step.above and step.owner == unmapped):
            return Distrust(step.path, Way.OWNER, step.owner, mode, f"chown {uid} {quote(step.path)}")
        writers = mode & (stat.S_IWOTH if step.group_of_one else stat.S_IWOTH | stat.S_IWGRP)
        sticky = step.above and stat.S_ISDIR(step.mode) and mode & stat.S_ISVTX
        if writers and not sticky:
            return Distrust(step.path, Way.WRITE, step.owner, mode, f"chmod go-w {quote(step.path)}")
    return None


# --------------------------------------------------------------------------------------------------
# The facts: who owns each step of a path, and who may write to it.


_OVERFLOW = "/proc/sys/kernel/overflowuid"
_UID_MAP = "/proc/self/uid_map"
_WHOLE_MAP = ["0", "0", "4294967295"]


def untrusted(path: str) -> Distrust | None:
    """How another user reaches this path, over its name or over what its links lead to; None if none does.

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
    """The owner that stands for every user outside of our user namespace, where we are in one."""
    try:
        with open(_UID_MAP, encoding="ascii") as file:
            if file.read().split() == _WHOLE_MAP:
                return None
        with open(_OVERFLOW, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
