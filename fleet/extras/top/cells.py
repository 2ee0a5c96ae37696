"""What the view shows, as plain words and the names of styles. Pure: documents and a clock in, cells out.

Nothing here is markup. A text from outside goes through `words` once and is then only ever drawn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet import engine
from fleet.core.words import Detail, State
from fleet.text import ago, one_line, plural

Row = Mapping[str, Any]

# detail: (sign, style). The sign carries the meaning where there is no colour.
LOOKS: dict[str, tuple[str, str]] = {
    Detail.WORKING: ("●", "good"),
    Detail.IDLE: ("○", "calm"),
    Detail.STARTING: ("◌", "calm"),
    Detail.WAITING: ("◷", "calm"),
    Detail.LIMITED: ("◷", "warm"),
    Detail.RETRYING: ("↻", "warm"),
    Detail.BACKOFF: ("↻", "warm"),
    Detail.PAUSED: ("‖", "soft"),
    Detail.FROZEN: ("❄", "soft"),
    Detail.HELD: ("‖", "soft"),
    Detail.STOPPING: ("◌", "soft"),
    Detail.DONE: ("✔", "soft"),
    Detail.EXITED: ("·", "soft"),
    Detail.DOWN: ("·", "soft"),
    Detail.DISABLED: ("·", "soft"),
}
TROUBLED = ("!", "bad")  # every other detail, one of a newer engine too
URGENT = frozenset({Detail.FATAL, Detail.ASKING})
FINE = frozenset({State.RUNNING, State.STOPPED})


@dataclass(frozen=True, slots=True)
class Cell:
    """Some text in one style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """`weight`: columns go, the heaviest first, when the terminal is narrow. 0 never goes."""

    title: str
    width: int
    weight: int = 0
    right: bool = False


COLUMNS = (
    Column("name", 14),
    Column("state", 11),
    Column("for", 5, right=True),
    Column("phase", 9, 3),
    Column("model", 16, 5),
    Column("tokens", 7, 2, right=True),
    Column("cost", 7, 4, right=True),
    Column("heals", 5, 6, right=True),
    Column("why", 0),  # takes what is left
)
WHY_LEAST = 24
GAP = 2


def words(text: object) -> str:
    """One line of foreign text that cannot do anything."""
    return one_line(engine.spoken(str(text or "")))


def fitting(
    width: int, rows: Sequence[Row], used: Mapping[str, tuple[int, float | None]]
) -> list[tuple[int, Column]]:
    """The columns that fit, each with its width; an empty column goes first."""
    empty = {
        "phase": not any(r.get("phase") for r in rows),
        "model": not any(r.get("model") for r in rows),
        "tokens": not used,
        "cost": not any(cost is not None for _, cost in used.values()),
        "heals": not any(r.get("restarts") for r in rows),
    }
    kept = [c for c in COLUMNS if not empty.get(c.title, False)]
    longest = max((len(words(r["name"])) for r in rows), default=4)
    name = max(4, min(longest, 24, max(8, width // 4)))

    def room(columns: Sequence[Column]) -> int:
        return width - sum((name if c.title == "name" else c.width) + GAP for c in columns)

    while room(kept) < WHY_LEAST and any(c.weight for c in kept):
        kept.remove(max(kept, key=lambda c: c.weight))
    sizes = {"name": name, "why": max(room(kept), 4)}
    return [(sizes.get(c.title, c.width), c) for c in kept]


def cells(row: Row, now: float, used: Mapping[str, tuple[int, float | None]]) -> dict[str, Cell]:
    """Everything about one agent, by column."""
    detail = str(row["detail"])
    sign, style = LOOKS.get(detail, TROUBLED)
    style = style if row["state"] in FINE else "bad"
    tokens, cost = used.get(row["name"], (None, None))
    since = row.get("since")
    return {
        "name": Cell(words(row["name"]), "soft" if style == "soft" else "name"),
        "state": Cell(f"{sign} {detail}", style),
        "for": Cell(ago(now - since) if since else "", "soft"),
        "phase": Cell(words(row.get("phase")), "calm"),
        "model": Cell(words(row.get("model")), "soft"),
        "tokens": Cell(count(tokens), "calm"),
        "cost": Cell("" if cost is None else f"${cost:.2f}", "calm"),
        "heals": Cell(str(row.get("restarts") or ""), "warm"),
        "why": Cell(_why(row, now), "bad" if style == "bad" else "soft"),
    }


def _why(row: Row, now: float) -> str:
    until = row.get("until")
    left = f"{ago(until - now)} left · " if until and until > now else ""
    waiting = f" · {row['messages']} to be typed" if row.get("messages") else ""
    drift = f" · differs from the file: {', '.join(row['drift'])}" if row.get("drift") else ""
    return left + words(row.get("reason")) + waiting + drift


def ordered(rows: Iterable[Row], needle: str = "") -> list[Row]:
    """Rows that need an operator first, then other trouble, then the rest in the order of the file."""

    def rank(row: Row) -> int:
        detail = row["detail"]
        if detail in URGENT or row["state"] == State.FATAL:
            return 0
        return 2 if detail in LOOKS and row["state"] in FINE else 1

    wanted = needle.lower()
    fields = ("name", "detail", "state", "model", "phase", "role", "backend", "reason")
    hit = [r for r in rows if not wanted or any(wanted in str(r.get(f, "")).lower() for f in fields)]
    return sorted(hit, key=rank)


def headline(facts: Mapping[str, Any], now: str) -> list[Cell]:
    """The fleet in one line; a narrow terminal cuts its end, so trouble is counted first."""
    counts = Counter(str(r["detail"]) for r in facts["agents"]).most_common()
    shown = sorted(counts, key=lambda count: LOOKS.get(count[0], TROUBLED) != TROUBLED)[:5]
    dog = facts["watchdog"]
    fine = dog["state"] == "running"
    text = "watchdog ok" if fine else f"watchdog {dog['state']}"
    said = [Cell(words(facts["project"]["prefix"]).rstrip("-_") or "fleet", "title"), Cell("   ")]
    said += [Cell(now, "soft"), Cell("   "), Cell(text, "soft" if fine else "bad"), Cell("   ")]
    said.append(Cell(plural(len(facts["agents"]), "agent"), "calm"))
    for detail, number in shown:
        sign, style = LOOKS.get(detail, TROUBLED)
        said += [Cell("   "), Cell(f"{sign} {number} {detail.lower()}", style)]
    return said


def progress(ids: Sequence[str], loop: Mapping[str, Any] | None, gates: Sequence[str]) -> list[Cell]:
    """Phases as a line: what is done, where we are, which checks have spoken, what is to come."""
    if loop is None or not ids:
        return []
    here = loop["index"] if loop["index"] is not None else -1
    if loop["complete"]:
        here = len(ids)
    said: list[Cell] = []
    for number, name in enumerate(ids):
        if number:
            said.append(Cell(" ━━ ", "good" if number <= here else "soft"))
        sign, style = ("✔", "good") if number < here else ("○", "soft")
        if number == here:
            sign, style = "●", "title"
        said.append(Cell(f"{sign} {words(name)}", style))
        if number == here:
            said += [Cell(" gates ", "soft")] if gates else []
            said += [Cell(*GATE_LOOKS[word]) for word in gates]
    if loop["complete"]:
        said.append(Cell("   complete", "good"))
    if loop["held"]:
        said.append(Cell(f"   held: {words(loop['held'])}", "bad"))
    return said


GATE = re.compile(r"gate (\d+)")
GATE_LOOKS = {"started": ("…", "calm"), "passed": ("✔", "good"), "failed": ("✘", "bad")}


def gates_of(records: Iterable[Mapping[str, Any]], phase: str) -> list[str]:
    """What the checks of the running phase last said, in their order."""
    found: dict[int, str] = {}
    for record in records:
        family, _, word = str(record.get("type", "")).partition(".")
        number = GATE.match(str(record.get("reason", "")))
        if family == "gate" and word in GATE_LOOKS and number and record["facts"].get("phase") == phase:
            found[int(number[1])] = word
    return [found[number] for number in sorted(found)]


def happened(record: Mapping[str, Any], clock: str) -> list[Cell]:
    """One event as a line."""
    kind = str(record.get("type", ""))
    return [
        Cell(clock + " ", "soft"),
        Cell(f"{words(record.get('agent')) or '-':<12.12} ", "name"),
        Cell(f"{words(kind):<22} ", event_style(kind)),
        Cell(words(record.get("reason")), "soft"),
    ]


def event_style(kind: str) -> str:
    """Good news, bad news, or neither."""
    word = kind.partition(".")[2]
    if word in {"died", "failed", "failed_for_good", "flapped", "rejected", "degraded", "lost", "wedged"}:
        return "bad"
    if word in {"advanced", "completed", "passed", "healed", "recovered", "ready", "resumed", "founded"}:
        return "good"
    return "warm" if word in {"limited", "stalled", "held", "asked", "unknown"} else "calm"


def count(number: int | None) -> str:
    """A figure in at most six characters."""
    if number is None:
        return ""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)
