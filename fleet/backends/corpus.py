"""Are screens still read right? The recorded corpus, banners that mean nothing, and the contract's rules.

The corpus lies in tests/fixtures/screens, one captures.toml a CLI; an installed package has it too. No
config, no network, no agent CLI is needed.

A banner may stand on a screen without being one: the agent reads, quotes or greps it. `draw` in the
`embed.py` of a CLI's folder draws a whole screen of it with a text somewhere in it. None of these screens is
limited or wedged, whatever the text says; the self-test and the fuzz tests hold the reader to that.
"""

from __future__ import annotations

import functools
import importlib
import os
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from fleet import engine
from fleet.backends import profiles
from fleet.backends.screen_reader import read
from fleet.core.model import Backend
from fleet.core.seen import ScreenState
from fleet.times.moment import Wall

CORPUS = engine.shipped("tests/fixtures/screens")
EMBEDDINGS = 100  # of each CLI; the test suite runs thousands
NOW = Wall(1794798000.0)
NEVER = {ScreenState.LIMITED, ScreenState.WEDGED}

Screen = list[str]
WIDTHS = (200, 120, 80, 60)
_WORDS = (
    "the", "log", "shows", "this", "line", "again", "and", "nothing", "else", "happened", "here,", "so we",
)  # fmt: skip
_GLYPHS = (
    "限制 ", "🚧 ", "— ", "» ", "  ", "- ", "> ", "| ", "1. ", "E   ", "+ ", "│ ", "2026-11-16 04:25 WARN ",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """One screen: what it shows and what we read."""

    name: str
    expected: str
    got: str
    ok: bool

    @property
    def detail(self) -> str:
        """What was read, if it was not what was expected."""
        return self.got if self.ok else f"expected {self.expected}, read {self.got}"


@dataclass(frozen=True, slots=True)
class Capture:
    """One recorded screen and its label."""

    cli: str
    name: str
    text: str
    state: str
    taken: Wall
    zone: str
    dialog: str = ""
    until: float | None = None
    draft: str = ""


def captures(cli: str, corpus: str = CORPUS) -> Iterator[Capture]:
    """The labelled screens of one CLI."""
    directory = os.path.join(corpus, cli)
    with open(os.path.join(directory, "captures.toml"), "rb") as file:
        labels = tomllib.load(file)
    for name, label in labels.items():
        with open(os.path.join(directory, f"{name}.txt"), encoding="utf-8") as file:
            text = file.read()
        until = label.get("until")
        yield Capture(
            cli=cli,
            name=name,
            text=text,
            state=label["state"],
            taken=Wall(label["taken"].timestamp()),
            zone=label["zone"],
            dialog=label.get("dialog", ""),
            until=until.timestamp() if until else None,
            draft=label.get("draft", ""),
        )


def recorded(corpus: str = CORPUS) -> list[str]:
    """The CLIs that have a corpus."""
    return sorted(os.listdir(corpus)) if os.path.isdir(corpus) else []


def check(backend: Backend, capture: Capture) -> Trial:
    """One recorded screen against its label: state, dialog, instant and draft."""
    reading = read(backend, capture.text, now=capture.taken, zone=capture.zone)
    expected = _facts(capture.state, capture.dialog, capture.until, capture.draft)
    got = _facts(reading.state, reading.dialog, reading.until, reading.draft or "")
    return Trial(f"{capture.cli}/{capture.name}", expected, got, expected == got)


def _facts(state: str, dialog: str, until: float | None, draft: str) -> str:
    moment = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds") if until else ""
    facts = (dialog and f"dialog {dialog}", moment and f"until {moment}", draft and f"draft {draft!r}")
    return ", ".join(str(fact) for fact in (state, *facts) if fact)


def run(*, verbose: bool) -> list[Trial]:
    """Everything; `verbose` keeps one result for each embedding instead of one for each CLI."""
    results = []
    clis = recorded()
    if not clis:
        results.append(Trial("corpus", f"recorded screens in {CORPUS}", "no such directory", ok=False))
    for cli in clis:
        backend = profiles.load(cli)
        corpus = list(captures(cli))
        results += [check(backend, capture) for capture in corpus]
        if cli in drawers():
            rows = list(_embedded(backend, corpus))
            wrong = [row for row in rows if not row.ok]
            all_fine = Trial(f"{cli}: {len(rows)} banners where they mean nothing", "quiet", "quiet", ok=True)
            results += rows if verbose else wrong or [all_fine]
    results += [_contract(*row) for row in CONTRACT]
    return results


def _embedded(backend: Backend, corpus: list[Capture]) -> Iterator[Trial]:
    texts = banners(backend, corpus)
    for name, screen in embeddings(backend.name, texts, EMBEDDINGS, seed=1):
        state = read(backend, screen, now=NOW, zone="UTC").state
        yield Trial(name, "neither limited nor wedged", state, state not in NEVER)


def banners(backend: Backend, corpus: list[Capture]) -> list[str]:
    """The words of every limit, error and refusal in a corpus, without the glyph that makes them real."""
    bad = {"limited", "wedged", "error", "auth", "context", "retrying"}
    readings = (read(backend, c.text, now=c.taken, zone=c.zone) for c in corpus if c.state in bad)
    return sorted({reading.line.lstrip("⎿●⏺■✻·⬝ ") for reading in readings if reading.line})


_PLAIN = Backend(
    "plain",
    "x",
    active_re=r"esc to interrupt|Running tool",
    limit_re=r"usage limit|limit reached|reached your .*limit",
    fatal_re=r"redacted_thinking|cannot be modified",
)
_FOOTED = Backend(
    "footed",
    "x",
    active_re=r"esc interrupt|thinking",
    limit_re=r"usage limit|limit reached",
    footer_ui=True,
)
_FILL = "\n".join(f"line {n}" for n in range(20))

# The contract's three regexes: what an agents.toml without a profile may rely on.
CONTRACT: tuple[tuple[str, Backend, str, str], ...] = (
    ("nothing to see is idle", _PLAIN, "a finished answer\n> \n", "idle"),
    ("an active line is work", _PLAIN, "thinking\n  esc to interrupt\n", "working"),
    ("a limit near the bottom", _PLAIN, f"{_FILL}\nlimit reached · resets 3pm\n> ", "limited"),
    ("a limit far above", _PLAIN, f"limit reached · resets 3pm\n{_FILL}\n> ", "idle"),
    ("a limit while active", _PLAIN, "limit reached · resets 3pm\nesc to interrupt", "working"),
    ("a fatal text near the bottom", _PLAIN, "blocks cannot be modified\n> ", "wedged"),
    ("a fatal text far above", _PLAIN, f"blocks cannot be modified\n{_FILL}\n> ", "idle"),
    ("a footer that works", _FOOTED, f"{_FILL}\n\n  box\n  esc interrupt\n", "working"),
    ("old activity above a still footer", _FOOTED, f"esc interrupt\n{_FILL}\n  box\n  ready\n", "idle"),
)


def _contract(name: str, backend: Backend, screen: str, expected: str) -> Trial:
    got = read(backend, screen, now=NOW, zone="UTC").state
    return Trial(f"contract: {name}", expected, got, got == expected)


# --------------------------------------------------------------------------------------------------
# Drawing screens with a text in them.


def prose(rng: Random) -> str:
    """Some harmless words."""
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(3, 14)))


def often(rng: Random) -> bool:
    """True half of the time."""
    return rng.random() < 1 / 2


def lead(rng: Random) -> str:
    """What stands before a quoted text: half of the time nothing."""
    return rng.choice(_GLYPHS) if often(rng) else ""


def wrapped(text: str, width: int, first: str, rest: str) -> Screen:
    """A paragraph as a TUI wraps it."""
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest) or [first.rstrip()]


def output(rng: Random, text: str, width: int, first: str, rest: str) -> Screen:
    """A tool's output with the text in it; programs do not wrap at words."""
    lines = [prose(rng) for _ in range(rng.randint(0, 5))]
    lines.insert(rng.randint(0, len(lines)), lead(rng) + text)
    flat = [line[i : i + width - 6] for line in lines for i in range(0, len(line), width - 6)]
    return [(rest if n else first) + line for n, line in enumerate(flat)]


@functools.cache
def drawers() -> Mapping[str, Callable[[Random, str], Screen]]:
    """`draw` of each CLI that has one, by folder."""
    folders = profiles.folders("embed.py")
    return {name: importlib.import_module(f"{__package__}.{name}.embed").draw for name in folders}


def embeddings(cli: str, texts: list[str], count: int, seed: int) -> Iterator[tuple[str, str]]:
    """`count` screens of that CLI, each with one of the texts. The same seed gives the same screens."""
    rng = Random(seed)  # noqa: S311  a test's dice, not a secret's
    for n in range(count):
        text = rng.choice(texts)
        yield f"{cli}: {n} of seed {seed}: {text[:40]}", "\n".join(drawers()[cli](rng, text))
