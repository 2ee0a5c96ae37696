"""Three fingerprints of a seed, to see that a change of the code changed nothing else.

`bytes` is what the record and the view hold, to the letter: it survives a move of code, not a new sentence.
`world` is what the world saw, in order: tmux commands that change something, signals, files by name.
`events` is which events each subject had, without their order: it survives a change in the timing of others.

`python -m tests.sim --goldens` compares with the files in tests/sim/goldens, with `--long` those of long runs
too; with `--renew` it writes them. `BOOKS` says which seeds are in which file. Each file names its hours and
the Python it was made with; another Python is not compared, as it draws other numbers. A commit that renews
them says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from fleet.store.eventlog import parse
from tests.sim.declared import LOG_DIR
from tests.sim.disk import SimDisk


@dataclass(frozen=True)
class Golden:
    """The three of one seed."""

    bytes: str = ""
    world: str = ""
    events: str = ""


class WorldTrace:
    """Hashes what the world saw, as it happens."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)

    def note(self, *words: object) -> None:
        """One thing that was changed."""
        self._hash.update("\0".join(map(str, (*words, "\n"))).encode("utf-8", "surrogatepass"))

    def digest(self) -> str:
        """So far."""
        return self._hash.hexdigest()


def golden(disk: SimDisk, trace: WorldTrace) -> tuple[Golden, Counter[str]]:
    """The fingerprints of a run that is over, and how many events of each type are on record."""
    paths = [f"{LOG_DIR}/events.jsonl{end}" for end in (".4", ".3", ".2", ".1", "")]
    lines = [bytes(disk.files[p].data) for p in paths if p in disk.files]
    view = disk.text(f"{LOG_DIR}/state/view.json").encode()
    records = [r for text in lines for line in text.split(b"\n") if (r := parse(line)) is not None]
    counted = Counter((r["agent"], r["type"]) for r in records)
    had = json.dumps(sorted(counted.items())).encode()
    found = Golden(_digest([*lines, view]), trace.digest(), _digest([had]))
    return found, Counter(r["type"] for r in records)


FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Plan:
    """What one file holds: seeds from 0 on, run for some hours, of fleets with or without a loop."""

    seeds: int
    hours: float
    loop: bool = False
    long: bool = False  # minutes of both cores: only when asked for


BOOKS = {  # by the name of the file
    "plain": Plan(20, 2.0),
    "loops": Plan(20, 2.0, loop=True),
    "plain-long": Plan(20, 24.0, long=True),
    "loops-long": Plan(8, 6.0, loop=True, long=True),
}


@dataclass
class Book:
    """One file: what each of its seeds was like."""

    hours: float
    python: str
    seeds: dict[str, dict[str, str]]

    @property
    def comparable(self) -> bool:
        """Was it made with this Python?"""
        return self.python == PYTHON

    def differences(self, found: dict[int, Golden]) -> list[str]:
        """What is not as it was, a line each."""
        return [
            f"seed {seed}: {name} is not what it was"
            for seed, one in found.items()
            for name, value in self.seeds[str(seed)].items()
            if getattr(one, name) != value
        ]


def read(name: str) -> Book:
    """The file of that name."""
    with open(os.path.join(FOLDER, f"{name}.json"), encoding="utf-8") as file:
        return Book(**json.load(file))


def write(name: str, found: dict[int, Golden]) -> None:
    """Renew it. Long runs go without `bytes`: a new sentence must not cost minutes."""
    plan = BOOKS[name]
    kept = {str(seed): asdict(one) for seed, one in sorted(found.items())}
    if plan.long:
        kept = {seed: {n: value for n, value in one.items() if n != "bytes"} for seed, one in kept.items()}
    book = Book(plan.hours, PYTHON, kept)
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(asdict(book), file, indent=1)
        file.write("\n")


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(part)
    return found.hexdigest()
