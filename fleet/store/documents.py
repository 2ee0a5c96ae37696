"""What must survive a crash: one JSON document per name, each whole, dated by a generation, and checkable.

A document is `{v, gen, sum, data}` on one line. It is good when writing it again gives the same bytes, so
any damage shows, whichever byte it hit. Replacing one keeps its predecessor as `.prev`; a damaged one is
moved aside (`.corrupt-<time>`), reported in `troubles`, and the predecessor is used. Nothing unreadable is
ever overwritten by defaults.

Files whose form is a promise to users (phase-idx, <name>.id, kickoff-*.txt, limited-*.json) are bare:
`read_text`, `write_text`, `read_plain`, `write_plain`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fleet.core.decision import Fault
from fleet.ports import Disk

Document = dict[str, Any]

VERSION = 1
MIGRATIONS: dict[int, Callable[[Document], Document]] = {}  # from that version to the next one
TEXT_CAP = 8 << 20  # a kickoff of a megabyte, in any encoding, with room to spare
STALE_TEMP_S = 3600.0
KEEP_QUARANTINED = 10

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)?")
_TEXT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FOREIGN = frozenset({errno.ELOOP, errno.EINVAL, errno.EMLINK, errno.EFBIG})  # a thing we did not put there


class StoreError(Fault):
    """State that this version must not touch. Says which file and what to do."""


class _Damaged(Exception):
    """The bytes are not a document of ours."""


class _Held(NamedTuple):
    """What the disk shows as far as we know: `text` is the data as JSON, `raw` the whole document."""

    gen: int
    text: str
    raw: bytes


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _encode(name: str, version: int, gen: int, text: str) -> bytes:
    digest = hashlib.sha256(f"{name}\n{version}\n{gen}\n{text}".encode("utf-8", "surrogatepass"))
    line = f'{{"v":{version},"gen":{gen},"sum":"{digest.hexdigest()[:32]}","data":{text}}}\n'
    return line.encode("utf-8", "surrogatepass")


def _decode(name: str, raw: bytes) -> tuple[int, int, Document]:
    """Version, generation and data, or _Damaged."""
    try:
        outer = json.loads(raw.decode("utf-8", "surrogatepass"))
        version, gen, data = outer["v"], outer["gen"], outer["data"]
        if not (type(version) is type(gen) is int and isinstance(data, dict)):
            raise _Damaged("the envelope is not ours")
        same = _encode(name, version, gen, _dump(data)) == raw
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _Damaged(str(error) or type(error).__name__) from error
    if not same:
        raise _Damaged("the checksum does not fit the content")
    return version, gen, data


class Store:
    """Documents under one directory. With `repair=False` it only looks: nothing is moved or written."""

    def __init__(self, disk: Disk, state_dir: str, now: Callable[[], float], *, repair: bool = True) -> None:
        """`now` is the wall clock; it only dates what is set aside."""
        self._disk = disk
        self._dir = state_dir
        self._now = now
        self._repair = repair
        self._held: dict[str, _Held] = {}
        self.troubles: list[str] = []  # one sentence per damaged file; the reporter clears the list

    def path(self, name: str) -> str:
        """Where the document of that name lies."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a document")
        return f"{self._dir}/{name}.json"

    def load(self, name: str) -> Document | None:
        """The document, or its predecessor when it is damaged or missing; None when there never was one."""
        path = self.path(name)
        for candidate in (path, f"{path}.prev"):
            found = self._read_document(name, candidate)
            if found is not None:
                return found
        self._held.pop(name, None)
        return None

    def save(self, name: str, data: Document, *, sync: bool = True) -> None:
        """Make `data` the document. The same data again costs a comparison and no write.

        Without `sync` it is only atomic, and the last one that was durable stays beside it.
        """
        if name not in self._held:
            self.load(name)  # learn the generation, and set a damaged file aside before taking its place
        held = self._held.get(name)
        text = _dump(data)
        if held is not None and held.text == text:
            return
        path = self.path(name)
        gen = held.gen + 1 if held is not None else 1
        if self._disk.stat(path) is None:
            self._disk.make_dir(path.rpartition("/")[0])
        elif sync:
            # Whichever of the two names a loss of power takes back, one of them is a whole document.
            self._disk.rename(path, f"{path}.prev", sync=False)
        raw = _encode(name, VERSION, gen, text)
        self._disk.write(path, raw, sync=sync)
        self._held[name] = _Held(gen, text, raw)

    def tidy(self) -> None:
        """Clear away what crashes left: old temporary files, and quarantined ones beyond a few."""
        for folder in (self._dir, f"{self._dir}/agents"):
            names = self._disk.names(folder)
            for name in names:
                found = self._disk.stat(f"{folder}/{name}") if _is_temp(name) else None
                if found and self._now() - found.mtime_ns / 1e9 > STALE_TEMP_S:
                    self._disk.remove(f"{folder}/{name}")
            aside = sorted((n for n in names if ".corrupt-" in n), key=lambda n: n.rpartition("-")[2])
            for name in aside[:-KEEP_QUARANTINED]:
                self._disk.remove(f"{folder}/{name}")

    def read_text(self, name: str, cap: int = TEXT_CAP) -> str | None:
        """A bare file's text, or None when there is none."""
        try:
            return self._disk.read(self._text_path(name), cap).decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return None

    def write_text(self, name: str, text: str) -> None:
        """Replace a bare file, atomically."""
        if self._disk.stat(self._dir) is None:
            self._disk.make_dir(self._dir)
        self._disk.write(self._text_path(name), text.encode("utf-8", "surrogateescape"))

    def remove_text(self, name: str) -> None:
        """A bare file, gone."""
        self._disk.remove(self._text_path(name))

    def read_plain(self, name: str) -> Document | None:
        """A bare JSON object; one that cannot be read is set aside and reported, and counts as absent."""
        path = self._text_path(name)
        try:
            data = json.loads(self._disk.read(path))
            if not isinstance(data, dict):
                raise _Damaged("expected a JSON object")
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, _Damaged) as error:
            self._set_aside(path, str(error))
            return None
        except OSError as error:
            if error.errno not in _FOREIGN:
                raise
            self._set_aside(path, error.strerror or str(error))
            return None
        return data

    def write_plain(self, name: str, data: Document) -> None:
        """Replace a bare JSON object."""
        self.write_text(name, _dump(data) + "\n")

    def _text_path(self, name: str) -> str:
        if not _TEXT_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a state file")
        return f"{self._dir}/{name}"

    def _read_document(self, name: str, path: str) -> Document | None:
        """The data of one file, held from now on; None when it is not there or had to be set aside."""
        held = self._held.get(name)
        try:
            raw = self._disk.read(path, TEXT_CAP)
            if held is not None and held.raw == raw:  # byte by byte what was found whole before
                unchanged: Document = json.loads(held.text)
                return unchanged
            version, gen, data = _decode(name, raw)
        except FileNotFoundError:
            return None
        except _Damaged as error:
            self._set_aside(path, str(error))
            return None
        except OSError as error:
            if error.errno not in _FOREIGN:
                raise  # we could not look; that is not the same as damage
            self._set_aside(path, error.strerror or str(error))
            return None
        if version > VERSION:
            raise StoreError(
                f"{path}: written by a newer version (format {version}, this one reads up to {VERSION}):"
                " run that version, or move the file away to start afresh"
            )
        for step in range(version, VERSION):
            data = MIGRATIONS[step](data)
        self._held[name] = _Held(gen, _dump(data), raw)
        return data

    def _set_aside(self, path: str, why: str) -> None:
        if not self._repair:
            self.troubles.append(f"{path}: damaged ({why}); the watchdog or the next `up` sets it aside")
            return
        aside = f"{path}.corrupt-{int(self._now() * 1000)}"
        self._disk.rename(path, aside)
        self.troubles.append(f"{path}: damaged ({why}); kept as {aside} for you to look at")


def _is_temp(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")
