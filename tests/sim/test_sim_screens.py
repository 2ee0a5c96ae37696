"""The simulated agents' screens say to the real reader what the agents truly do."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from fleet.backends.screen_reader import read
from fleet.config import parse
from fleet.core.seen import ScreenState
from tests.sim.agents import PERSONAS, UNREADABLE, Account, Mood, SimAgent, Temper
from tests.sim.clock import SimClock
from tests.sim.declared import CONFIG, Declared, toml
from tests.sim.processes import ProcessTable
from tests.sim.tmux import SimSession

SAID = {
    "work": ScreenState.WORKING,
    "silent": ScreenState.IDLE,
    "hung": ScreenState.WORKING,
    "idle": ScreenState.IDLE,
    "done": ScreenState.IDLE,
    "wait": ScreenState.IDLE,
    "ask": ScreenState.ASKING,
    "limit": ScreenState.LIMITED,
    "retry": ScreenState.RETRYING,
    "wedge": ScreenState.WEDGED,
    "error": ScreenState.ERROR,
    "auth": ScreenState.AUTH,
    "context": ScreenState.CONTEXT,
    "strange": ScreenState.UNKNOWN,
    "shell": ScreenState.SHELL,
}
CASES = [(p, m, s) for p in ("clod", "opal") for m, s in SAID.items()]
CASES += [("plain", m, s) for m, s in SAID.items() if m not in UNREADABLE | {"retry"}]
CASES += [("plain", "retry", ScreenState.WORKING)]


@pytest.fixture(scope="module")
def fleet():
    return parse(toml([Declared("a")]), CONFIG, strict=True, is_file=lambda _path: True)


def agent(persona: str) -> SimAgent:
    clock, rng = SimClock(1_790_000_000.0), Random(1)
    table = ProcessTable(clock, rng)
    session = SimSession("sim-a", "%0", table.spawn("sh"), clock.wall())
    return SimAgent(
        "a", PERSONAS[persona], session, clock=clock, rng=rng, table=table, temper=Temper(quotes=1.0),
        account=Account(), zone="Europe/Berlin", moods=Counter(), kickoff=True,
    )  # fmt: skip


def reading(fleet, one: SimAgent):
    backend = next(b for b in fleet.backends if b.name == one.persona.comm)
    return read(backend, one.screen(), now=one.clock.wall(), zone=one.zone)


@pytest.mark.parametrize(("persona", "mood", "said"), CASES)
def test_each_mood_is_read_as_what_it_is(fleet, persona, mood, said):
    one = agent(persona)
    one.begin("the kickoff")
    if mood != "work":
        getattr(one, f"_to_{mood}")()
    assert one.mood == Mood(mood)
    assert reading(fleet, one).state is said


@pytest.mark.parametrize("persona", ["clod", "opal"])
def test_a_banner_names_the_reset_that_the_account_has(fleet, persona):
    for _ in range(30):
        one = agent(persona)
        one.rng = Random(_)
        one.begin("the kickoff")
        one._to_limit()
        assert reading(fleet, one).until == (one.banner or None)


def test_a_draft_and_a_marker_are_seen(fleet):
    one = agent("clod")
    one.begin("the kickoff")
    one._to_wait()
    one.human_types("half a sen")
    seen = reading(fleet, one)
    assert seen.draft == "half a sen"
    assert seen.marker is not None
    assert abs((seen.marker.until or 0) - one.until) < 1
