"""Cases for rule tables: an ordinary agent at an ordinary moment, and one thing changed."""

from __future__ import annotations

from typing import Any

from fleet.core.case import AgentSeen, Case, ProcView, Wish
from fleet.core.desired import Want
from fleet.core.loop.loop_case import LoopShown
from fleet.core.memory import AgentMemory, Limit, Message, Run
from fleet.core.model import Backend, Member, Pattern, WatchdogSpec
from fleet.core.seen import Marker, PaneRef, PaneView, Reading, ScreenState, ServerId
from fleet.core.words import MessageKind
from fleet.times.moment import Moment
from tests.records import replace

NOW = Moment(steady=1_000_000.0, wall=1_800_000_000.0)
SERVER = ServerId(10, 1_799_000_000)
REF = PaneRef(SERVER, "p-a", "%1", 100, "run1")
PANE = PaneView(REF, dead=False, created=NOW.wall - 3600, activity=NOW.wall - 0.5)
UP = Wish(Want.UP)
WD = WatchdogSpec()
BACKEND = Backend(
    "tui", "tui", process_name="tui", patterns=(Pattern("idle", "idle", "x"),), stall_idle=300.0
)
CONTRACT = Backend("plain", "plain", active_re="esc to interrupt")
AGENT = Member("a", "p-a", "persistent", "tui", "/tmp", "heal+stall")
LOOP_AGENT = replace(AGENT, kind="loop", role="builder")
SERVICE = Member("s", "p-s", "service", "", "/tmp", "heal", command="run")
READY = AgentMemory(
    run=Run("run1", "p-a", NOW.wall - 3600, 100, "tui"),
    seen_run="run1",
    ready=NOW.steady - 600,
    alive_since=NOW.steady - 3600,
    quiet_since=NOW.steady - 5,
    still_since=NOW.steady - 5,
    state="idle",
    state_since=NOW.steady - 5,
    state_looks=2,
    content="h",
)
IDLE = Reading(ScreenState.IDLE, "idle", draft="", content_hash="h")
PROC = ProcView()


def dead(code: int | None = 1, signal: int | None = None) -> PaneView:
    """The pane after its program ended."""
    return PANE._replace(dead=True, exit_code=code, exit_signal=signal)


def reading(state: str, **more: Any) -> Reading:
    """What the screen says."""
    more.setdefault("content_hash", "h")
    return Reading(ScreenState(state), **more)


def seen(**more: Any) -> AgentSeen:
    """One look: alive, wanted, idle at its prompt, freshly read."""
    base = AgentSeen(pane=PANE, reading=IDLE, fresh=True, wish=UP)
    return replace(base, **more)


def case(memory: AgentMemory = READY, **more: Any) -> Case:
    """A case; `seen`, `agent`, `backend`, `now` and the rest may be given."""
    given = {"agent": AGENT, "backend": BACKEND, "watchdog": WD, "seen": seen(), "now": NOW} | more
    return Case(memory=memory, **given)


def message(kind: str = "send", text: str = "please go on with it", **more: Any) -> Message:
    """Something to type."""
    return Message(
        id=f"{kind}-1", kind=MessageKind(kind), text=text, tail=text[-24:], queued=NOW.steady - 1, **more
    )


def limit(**more: Any) -> Limit:
    """A window that closes in ten minutes."""
    given: dict[str, Any] = {"since": NOW.wall - 60, "until": NOW.wall + 600, "line": "limit · resets 3pm"}
    return Limit(**(given | more))


def marker(offset: float | None, text: str = "WAITING-UNTIL: soon") -> Marker:
    """An agent's own word, relative to now."""
    return Marker(None if offset is None else NOW.wall + offset, text)


__all__ = [n for n in dir() if not n.startswith("_")]
LOOP = LoopShown("p1")
