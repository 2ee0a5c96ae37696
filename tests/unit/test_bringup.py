"""What a bare `up` leaves as it is: one row a state."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fleet.core.agent.bringup import Left, left_as_it_is, limited_until
from fleet.core.desired import Desire, Want
from fleet.core.memory import AgentMemory, MadeFor, Run
from fleet.core.model import Member
from fleet.core.seen import PaneView
from fleet.times.moment import Wall
from tests.unit.cases import REF


@dataclass
class Row:
    want: Left | None
    kind: str = "persistent"
    watch: str = "heal"
    paused: bool = False
    frozen: bool = False
    pane: str = "none"  # none, alive, 0, 3, signal, unreaped
    finished: str = ""
    limited: bool = False


TASK = {"kind": "task", "watch": "none"}
TABLE = {
    "absent": Row(None),
    "running": Row(None, pane="alive"),
    "running and limited": Row(None, pane="alive", limited=True),
    "dead": Row(None, pane="3"),
    "paused, alive": Row(Left.PAUSED, paused=True, pane="alive"),
    "paused, dead": Row(Left.PAUSED, paused=True, pane="3"),
    "paused, absent": Row(Left.PAUSED, paused=True),
    "frozen": Row(Left.PAUSED, frozen=True, pane="alive"),
    "limited, dead": Row(Left.LIMITED, limited=True, pane="3"),
    "limited, absent": Row(Left.LIMITED, limited=True),
    "limited, unwatched: nobody else would start it": Row(None, watch="none", limited=True),
    "a task that never ran": Row(None, **TASK),
    "a task at work": Row(None, **TASK, pane="alive"),
    "a task that finished": Row(Left.FINISHED, **TASK, pane="0"),
    "a task that finished, its session gone": Row(Left.FINISHED, **TASK, finished="run"),
    "a task whose earlier run finished": Row(None, **TASK, finished="other"),
    "a task that failed": Row(None, **TASK, pane="3"),
    "a task that was killed": Row(None, **TASK, pane="signal"),
    "a task that failed after it had finished once": Row(None, **TASK, pane="3", finished="run"),
    "a task of which tmux knows no status yet": Row(None, **TASK, pane="unreaped"),
    "a task that is healed is never finished": Row(None, kind="task", watch="heal", pane="0"),
    "a persistent agent that exited with 0": Row(None, pane="0"),
}
PANES = {
    "none": None,
    "alive": PaneView(REF, dead=False),
    "0": PaneView(REF, dead=True, exit_code=0),
    "3": PaneView(REF, dead=True, exit_code=3),
    "signal": PaneView(REF, dead=True, exit_signal=9),
    "unreaped": PaneView(REF, dead=True),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bare_up_leaves_it(name):
    row = TABLE[name]
    spec = Member("a", "s-a", row.kind, "demo", "/", row.watch)
    entry = Desire(Want.UP, row.paused, row.frozen)
    memory = AgentMemory(finished=row.finished)
    run = Run("run", "s-a", 1.0)
    assert left_as_it_is(spec, entry, PANES[row.pane], run, memory, limited=row.limited) is row.want


def test_a_service_is_left_only_when_it_is_paused():
    service = Member("s", "s-s", "service", "", "/", "heal", command="true")
    for paused, want in ((False, None), (True, Left.PAUSED)):
        entry = Desire(Want.UP, paused=paused)
        assert left_as_it_is(service, entry, None, None, AgentMemory(), limited=True) is want


def test_a_pause_that_is_over_leaves_nobody():
    spec = Member("a", "s-a", "persistent", "demo", "/", "heal")
    entry = Desire(Want.UP, paused=True, until=100.0)
    for wall, want in ((99.0, Left.PAUSED), (100.0, None)):
        assert left_as_it_is(spec, entry, None, None, AgentMemory(), limited=False, wall=wall) is want


def test_a_window_is_the_agents_own_or_its_accounts():
    named = (("a", "x"), ("b", "x"), ("c", ""))
    a, b, c = (Member(n, n, "persistent", "demo", "/", "heal", account=word) for n, word in named)
    limits = [(a, 200.0), (c, 300.0)]
    assert [limited_until(agent, limits, 100.0) for agent in (a, b, c)] == [200.0, 200.0, 300.0]
    assert [limited_until(agent, limits, 250.0) for agent in (a, b, c)] == [0.0, 0.0, 300.0]


@pytest.mark.parametrize(
    ("identity", "call", "news"),
    [("new", 3, True), ("new", 2, True), ("old", 1, False), ("known", 2, False)],
    ids=["a later call", "a restart within the call", "brought back by a loss of power", "the same"],
)
def test_a_record_of_a_run_is_news_unless_it_is_of_an_earlier_call(identity, call, news):
    known = Run("known", "s-a", Wall(0.0), made_for=MadeFor(call=2))
    found = Run(identity, "s-a", Wall(0.0), made_for=MadeFor(call=call))
    assert found.supersedes(known) is news
    assert found.supersedes(None)
