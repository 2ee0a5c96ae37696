"""What must never be found in a history, and what must be found at its end. Pure: facts in, sentences out.

Each check carries the number of the promise it guards. `history` is the observer's, `deeds` and `verbs` are
what the nemesis did, `events` is the product's own record. A thing must be seen in two looks in a row before
it counts: one look is not one instant.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

WINDOW_S, STARTS_MAX = 900.0, 10  # five crashes and five clean exits
FLEET_MINUTE = 10
SERVER_S = 300.0  # after the loss of a server more starts are fine
DOGS_S = 10.0
ENTER_S = 2.0  # from a person's Enter to the agent's record of it
SETTLE_S = 0.5  # between a verb's last effect and its return lies no promise; after it, one
PARDONS = frozenset({"up", "reset", "restart"})

Row = dict[str, Any]
Found = Iterator[str]


@dataclass
class Story:
    """Everything there is to judge by."""

    prefix: str
    names: tuple[str, ...]
    history: list[Row]
    strangers: tuple[str, ...] = ()  # sessions on the fleet's server that are not ours
    deeds: list[Row] = field(default_factory=list)
    verbs: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    received: dict[str, list[Row]] = field(default_factory=dict)  # agent: what it was told
    ears: dict[str, str] = field(default_factory=dict)  # agent: bytes that a bare shell was given
    guests: str = ""  # bytes that strangers' panes were given
    open_modes: list[str] = field(default_factory=list)
    end: Row = field(default_factory=dict)

    def sessions(self) -> dict[str, str]:
        return {f"{self.prefix}{name}": name for name in self.names}


def unfold(lines: Iterable[Row]) -> list[Row]:
    """Looks that found nothing new, spelled out."""
    rows: list[Row] = []
    for line in lines:
        rows.append({**rows[-1], "t": line["t"]} if line.get("same") and rows else line)
    return rows


def _touching(story: Story, name: str, began: float, ended: float, kinds: Iterable[str]) -> bool:
    """Did a verb of these kinds concern this agent in that time?"""
    meant = (v for v in story.verbs if v["verb"] in kinds and (not v["names"] or name in v["names"]))
    return any(v["began"] <= ended and v["ended"] >= began for v in meant)


def _fleet_is_pardoned(story: Story, began: float, ended: float) -> bool:
    """Did a bare `up` give the whole fleet a fresh budget in that time?"""
    bare = (v for v in story.verbs if v["verb"] == "up" and not v["names"])
    return any(v["began"] <= ended and v["ended"] >= began for v in bare)


# --- at every instant ---------------------------------------------------------------------------------


def one_life_each(story: Story) -> Found:
    """I1, I29: never two process sets of one agent."""
    before: dict[str, frozenset[str]] = {}
    for row in story.history:
        several = {s: frozenset(r) for s, r in row["runs"].items() if len(r) > 1 and s in story.sessions()}
        for session, runs in several.items():
            if len(before.get(session, frozenset()) & runs) > 1:
                yield f"I1: {session} has processes of {len(runs)} runs at {row['t']:.1f}: {sorted(runs)}"
        before = several


def strangers_are_left_alone(story: Story) -> Found:
    """I2, I31: sessions that are not ours live on, and nobody types into them."""
    known: dict[tuple[int, str], str] = {}
    canaries: list[str] | None = None
    for row in story.history:
        here = {(row["server"], p[0]): p[2] for p in row["panes"] if p[0] in story.strangers}
        for (server, name), pid in known.items():
            if row["server"] == server and here.get((server, name)) != pid:
                yield f"I2: the stranger {name} ({pid}) is gone at {row['t']:.1f}"
        known = here if row["server"] is not None else known
        if row["canary"] is not None:
            if canaries is not None and canaries != row["canary"]:
                yield f"I2: the user's own server changed at {row['t']:.1f}: {canaries} -> {row['canary']}"
            canaries = row["canary"]
    if story.guests:
        yield f"I2: a stranger's pane was typed into: {story.guests[:80]!r}"


def a_limit_is_waited_for(story: Story) -> Found:
    """I5: no start of a limited agent before its reset."""
    for event in story.events:
        found = re.search(r"resets (\S+)$", event["reason"]) if event["type"] == "agent.limited" else None
        if found is None:
            continue
        until, name = datetime.fromisoformat(found[1]).timestamp(), event["agent"]
        for start in story.events:
            began = start["type"] == "agent.started" and start["agent"] == name
            early = began and event["ts"] < start["ts"] < until
            if early and not _touching(story, name, event["ts"] - 5, start["ts"], PARDONS):
                yield f"I5: {name} was started {until - start['ts']:.1f} s before its limit ends"


def nothing_is_typed_into_a_shell(story: Story) -> Found:
    """I8. A person's Enter may find a shell where the agent was when they began to write."""
    for name, heard in story.ears.items():
        lines = [line for line in heard.splitlines() if "HUMAN" not in line]
        theirs = sum(d["kind"] == "human_enter" and d["agent"] == name for d in story.deeds)
        if any(lines) or len(lines) > theirs:
            yield f"I8: a bare shell in place of {name} was typed into: {lines[:3]!r}"


def messages_arrive_once(story: Story) -> Found:
    """I11: at most once a run, and at least once when reported as delivered."""
    for name, told in story.received.items():
        heard = Counter((m["text"], m.get("pid")) for m in told if m["kind"] == "message")
        for (text, pid), count in heard.items():
            if count > 1 and "NOTE" in text:
                yield f"I11: {name} ({pid}) heard {text!r} {count} times"
    for verb in story.verbs:
        if verb["verb"] == "send" and verb["code"] == 0 and "NOTE" in verb["text"]:
            name = verb["names"][0]
            if not any(m["text"] == verb["text"] for m in story.received.get(name, ())):
                yield f"I11: {verb['text']!r} was reported as delivered to {name}, which never heard it"


def a_persons_words_stay_their_own(story: Story) -> Found:
    """I12: a draft is submitted by its writer, whole and alone, or not at all.

    Who begins to write behind words of ours that stand there, in the moment in which we typed them, and then
    presses Enter, has submitted both: that is their own doing.
    """
    said = {d["text"] for d in story.deeds if d["kind"] == "human_draft"}
    entered = [d for d in story.deeds if d["kind"] == "human_enter"]
    for name, told in story.received.items():
        for message in told:
            text = message["text"]
            own = any(
                d["agent"] == name and text.endswith(d["text"]) and 0 <= message["at"] - d["t"] < ENTER_S
                for d in entered
            )
            if "HUMAN" in text and text not in said and not own:
                yield f"I12: {name} was given a person's words mixed with others: {message['text']!r}"


def restarts_are_bounded(story: Story) -> Found:
    """I21: five crashes and five clean exits a quarter of an hour; ten heals a minute for the fleet."""
    lost = [e["ts"] for e in story.events if e["type"] == "server.lost"]
    heals = [e for e in story.events if e["type"] == "agent.healed"]
    for name in story.names:
        mine: list[float] = []
        for event in heals:
            if event["agent"] != name or any(0 <= event["ts"] - t < SERVER_S for t in lost):
                continue
            if mine and _touching(story, name, mine[-1], event["ts"], PARDONS):
                mine.clear()
            mine = [t for t in mine if event["ts"] - t < WINDOW_S] + [event["ts"]]
            if len(mine) > STARTS_MAX:
                yield f"I21: {name} was healed {len(mine)} times in a quarter of an hour"
    calm: list[float] = []
    for at in (e["ts"] for e in heals if not any(0 <= e["ts"] - t < SERVER_S for t in lost)):
        if calm and _fleet_is_pardoned(story, calm[-1], at):
            calm.clear()
        calm = [t for t in calm if at - t < 60] + [at]
        if len(calm) > FLEET_MINUTE:
            yield f"I21: more than {FLEET_MINUTE} heals within a minute at {at:.1f}"


def down_wins(story: Story) -> Found:
    """I25: what was taken down stays down until somebody brings it up."""
    brings = frozenset({"up", "restart"})
    for down in (v for v in story.verbs if v["verb"] == "down" and v["code"] == 0):
        for session, name in story.sessions().items():
            if down["names"] and name not in down["names"]:
                continue
            meant = [v for v in story.verbs if v["verb"] in brings and (not v["names"] or name in v["names"])]
            until = min((v["began"] for v in meant if v["ended"] > down["began"]), default=float("inf"))
            after = down["ended"] + SETTLE_S
            seen = [r["t"] for r in story.history if after < r["t"] < until and session in r["runs"]]
            if len(seen) > 1:
                yield f"I25: {name} runs at {seen[0]:.1f}, taken down at {down['ended']:.1f}"


def one_watchdog_acts(story: Story) -> Found:
    """I27: two may meet; they do not stay."""
    since: float | None = None
    for row in story.history:
        if len(row["dogs"]) < 2:
            since = None
        elif since is None:
            since = row["t"]
        elif row["t"] - since > DOGS_S:
            yield f"I27: {len(row['dogs'])} watchdogs live since {since:.1f}: {row['dogs']}"
            return


def every_run_has_a_cause(story: Story) -> Found:
    """I46: what came to life was announced, or is on record as started."""
    told = {e["facts"].get("run") for e in story.events if e["type"].endswith(".started")}
    came: dict[str, str] = {}
    for row in story.history:
        for session in row["runs"].keys() & story.sessions().keys():
            came |= dict.fromkeys(row["runs"][session], session)
    silent = {run: session for run, session in came.items() if run not in told}
    begun = {e["facts"]["run"] for e in story.events if e["type"] == "effect.begun"}
    nameless = {run: session for run, session in silent.items() if run not in begun}
    if nameless:
        yield f"I46: runs that are on no record: {nameless}"


def no_fault_of_its_own(story: Story) -> Found:
    """REL-16: a tick that failed is a fault of the product, whatever was done to it."""
    for event in story.events:
        if event["type"] == "watchdog.step_failed":
            yield f"fault: {event['reason']} {event['facts'].get('trace', '')[-600:]}"
    for verb in story.verbs:
        if verb.get("traceback"):
            yield f"fault: {verb['verb']}: {verb['traceback'][-600:]}"


def the_record_is_in_order(story: Story) -> Found:
    """I20: numbers only grow but where two writers met; nothing is open to others (I41)."""
    for mode in story.open_modes:
        yield f"I41: {mode}"


# --- at the end ---------------------------------------------------------------------------------------


def all_is_well_in_the_end(story: Story) -> Found:
    """I33, I47, I50: faults over, everything wanted runs, and `status` agrees."""
    if story.end.get("converged") is None:
        waited, why = story.end.get("waited", 0), story.end.get("problems")
        yield f"I50: not as desired {waited:.0f} s after the last fault: {why}"
    if story.end.get("left"):
        yield f"I29: left after the last `down`: {story.end['left']}"


CHECKS: tuple[Callable[[Story], Found], ...] = (
    one_life_each,
    strangers_are_left_alone,
    a_limit_is_waited_for,
    nothing_is_typed_into_a_shell,
    messages_arrive_once,
    a_persons_words_stay_their_own,
    restarts_are_bounded,
    down_wins,
    one_watchdog_acts,
    every_run_has_a_cause,
    no_fault_of_its_own,
    the_record_is_in_order,
    all_is_well_in_the_end,
)


def check(story: Story) -> list[str]:
    """Every broken promise, each said once."""
    return [text for one in CHECKS for text in list(dict.fromkeys(one(story)))[:5]]
